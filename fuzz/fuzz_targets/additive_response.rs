//! A response of an index under an additively homomorphic scheme, as its owner reads it: any bytes
//! enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{ELGAMAL_INDEX, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &ELGAMAL_INDEX.response,
    |b| ELGAMAL_INDEX.read_response(b),
    bytes
));
