//! Fuzz target: ciphertexts of the half ring of CKKS are read and switched to the whole ring, from any bytes.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.compact_ciphertexts, |b| CKKS.read_compact_ciphertexts(b), bytes);
});
