//! Fuzz target: the owner reads a response of mode `open`, from any bytes.
#![no_main]

use ciphervec_fuzz::{OPEN, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &OPEN.response,
    |b| OPEN.read_response(b),
    bytes
));
