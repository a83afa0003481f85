//! Fuzz target: the owner reads and decrypts an answer of private retrieval, from any bytes.
#![no_main]

use ciphervec_fuzz::{RETRIEVAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&RETRIEVAL.answer, |b| RETRIEVAL.read_answer(b), bytes);
});
