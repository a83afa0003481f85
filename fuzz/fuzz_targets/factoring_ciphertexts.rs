//! A table of ciphertexts of the same schemes, read and decrypted: any bytes enter, nothing but a
//! finding leaves.
#![no_main]

use ciphervec_fuzz::{FACTORING, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&FACTORING.ciphertexts, |b| FACTORING.read_ciphertexts(b), bytes);
    edited(&FACTORING.other_ciphertexts, |b| FACTORING.read_ciphertexts(b), bytes);
});
