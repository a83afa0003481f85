//! An answer of private retrieval, as its owner reads and decrypts it: any bytes enter, nothing but a finding
//! leaves.
#![no_main]

use ciphervec_fuzz::{RETRIEVAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&RETRIEVAL.answer, |b| RETRIEVAL.read_answer(b), bytes);
});
