//! Every test of this crate's interface in one binary: linked once, and run again on every
//! back-end.

mod backend;
mod backends_agree;
mod basis;
mod modulus;
mod montgomery;
mod ntt;
mod pcmm;
mod poly;
mod sample;
