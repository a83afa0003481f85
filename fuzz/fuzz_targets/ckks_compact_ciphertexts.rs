//! Ciphertexts of the half ring of CKKS, read and switched: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.compact_ciphertexts, |b| CKKS.read_compact_ciphertexts(b), bytes);
});
