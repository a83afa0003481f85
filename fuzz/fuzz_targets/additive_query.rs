//! Fuzz target: a server reads and answers a query of an index under an additively homomorphic
//! scheme, from any bytes.
#![no_main]

use ciphervec_fuzz::{ELGAMAL_INDEX, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &ELGAMAL_INDEX.query,
    |b| ELGAMAL_INDEX.read_query(b),
    bytes
));
