//! The CKKS scheme against complex numbers, on insecure sets at degree 2^10.

mod align;
mod attack;
mod bootstrap;
mod bootstrap_keys;
mod bootstrap_real;
mod exponential;
mod forecast;
mod functions;
mod key_switch;
mod operations;
mod params;
mod pcmm;
mod serialize;
mod support;
mod table;
mod truncated;
