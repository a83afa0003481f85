//! Fuzz target: encrypted vectors under an additively homomorphic scheme are read, from any bytes.
#![no_main]

use ciphervec_fuzz::{SIMILARITY, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&SIMILARITY.vectors, |b| SIMILARITY.read_vectors(b), bytes);
});
