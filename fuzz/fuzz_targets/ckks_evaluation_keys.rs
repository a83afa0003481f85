//! Evaluation keys of CKKS: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.evaluation_keys, |b| CKKS.read_evaluation_keys(b), bytes);
});
