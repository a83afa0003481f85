//! Fuzz target: a CKKS ciphertext is read and decrypted, from any bytes.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.ciphertext, |b| CKKS.read_ciphertext(b), bytes);
});
