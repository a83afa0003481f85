//! Fuzz target: a table of ElGamal ciphertexts is read and decrypted, from any bytes.
#![no_main]

use ciphervec_fuzz::{ELGAMAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&ELGAMAL.ciphertexts, |b| ELGAMAL.read_ciphertexts(b), bytes);
});
