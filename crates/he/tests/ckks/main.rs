//! The CKKS scheme against complex numbers, on insecure sets at degree 2^10.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod functions;
mod operations;
mod support;
