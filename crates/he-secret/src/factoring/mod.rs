//! Secret primes, which the keys of three schemes have, and computing modulo each of two.

pub(crate) mod crt;
pub(crate) mod multiplier;
pub(crate) mod secret_primes;

pub use ciphervec_he::factoring::*;
pub(crate) use secret_primes::signed;
