//! Fuzz target: the owner reads and opens a response of mode `sealed-query`, from any bytes.
#![no_main]

use ciphervec_fuzz::{SEALED_QUERY, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED_QUERY.response,
    |b| SEALED_QUERY.read_response(b),
    bytes
));
