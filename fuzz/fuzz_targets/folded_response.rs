//! Fuzz target: an owner reads an answer about chosen clusters, from any bytes.
#![no_main]

use ciphervec_fuzz::{FOLDED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &FOLDED.response,
    |b| FOLDED.read_response(b),
    bytes
));
