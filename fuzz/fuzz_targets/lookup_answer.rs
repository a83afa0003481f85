//! Fuzz target: a client decrypts an answer to encrypted counts, from any bytes.
#![no_main]

use ciphervec_fuzz::{LOOKUP, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &LOOKUP.answer,
    |b| LOOKUP.read_answer(b),
    bytes
));
