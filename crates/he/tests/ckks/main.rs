//! The CKKS scheme against complex numbers, on insecure sets at degree 2^10.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod align;
mod attack;
mod bytes;
mod functions;
mod keyswitch;
mod operations;
mod params;
mod pcmm;
mod support;
