//! The CKKS scheme against complex numbers, on insecure sets at degree 2^10.

mod align;
mod attack;
mod bytes;
mod functions;
mod keyswitch;
mod operations;
mod params;
mod pcmm;
mod support;
