//! Fuzz target: a client decrypts an answer of encrypted rows, from any bytes.
#![no_main]

use ciphervec_fuzz::{LOOKUP_TOKENS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &LOOKUP_TOKENS.answer,
    |b| LOOKUP_TOKENS.read_answer(b),
    bytes
));
