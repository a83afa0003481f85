//! Fuzz target: a server reads the evaluation keys of private retrieval, from any bytes.
#![no_main]

use ciphervec_fuzz::{RETRIEVAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&RETRIEVAL.evaluation_keys, |b| RETRIEVAL.read_keys(b), bytes);
});
