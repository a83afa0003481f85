//! A table of ElGamal ciphertexts, read and decrypted: any bytes enter, nothing but a finding
//! leaves.
#![no_main]

use ciphervec_fuzz::{ELGAMAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&ELGAMAL.ciphertexts, |b| ELGAMAL.read_ciphertexts(b), bytes);
});
