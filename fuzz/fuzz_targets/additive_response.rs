//! Fuzz target: the owner reads and opens a response of an index under an additively homomorphic
//! scheme, from any bytes.
#![no_main]

use ciphervec_fuzz::{ELGAMAL_INDEX, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &ELGAMAL_INDEX.response,
    |b| ELGAMAL_INDEX.read_response(b),
    bytes
));
