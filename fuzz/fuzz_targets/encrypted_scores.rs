//! Encrypted scores: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{SIMILARITY, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&SIMILARITY.scores, |b| SIMILARITY.read_scores(b), bytes);
});
