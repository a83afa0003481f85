//! Evaluation keys of private retrieval, as a server reads them: any bytes enter, nothing but a finding
//! leaves.
#![no_main]

use ciphervec_fuzz::{RETRIEVAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&RETRIEVAL.evaluation_keys, |b| RETRIEVAL.read_keys(b), bytes);
});
