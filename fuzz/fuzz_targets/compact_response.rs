//! Fuzz target: the owner reads and opens a response of mode `sealed-index`, from any bytes.
#![no_main]

use ciphervec_fuzz::{SEALED_INDEX, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED_INDEX.response,
    |b| SEALED_INDEX.read_response(b),
    bytes
));
