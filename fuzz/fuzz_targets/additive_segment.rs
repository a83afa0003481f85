//! Fuzz target: a server reads a segment under an additively homomorphic scheme, from any bytes.
//! What it accepts it writes again unchanged.
#![no_main]

use ciphervec_fuzz::{ELGAMAL_INDEX, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &ELGAMAL_INDEX.segment,
    |b| ELGAMAL_INDEX.read_segment(b),
    bytes
));
