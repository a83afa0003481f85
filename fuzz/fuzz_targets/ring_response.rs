//! Fuzz target: the owner reads and opens a response of mode `sealed`, from any bytes.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED.response,
    |b| SEALED.read_response(b),
    bytes
));
