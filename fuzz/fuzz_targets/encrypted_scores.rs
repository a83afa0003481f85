//! Fuzz target: the key owner reads and opens encrypted scores, from any bytes.
#![no_main]

use ciphervec_fuzz::{SIMILARITY, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&SIMILARITY.scores, |b| SIMILARITY.read_scores(b), bytes);
});
