//! A CKKS ciphertext, read and decrypted: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.ciphertext, |b| CKKS.read_ciphertext(b), bytes);
});
