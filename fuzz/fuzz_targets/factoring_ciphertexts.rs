//! Fuzz target: a table of ciphertexts of Paillier, Damgård–Jurik or Okamoto–Uchiyama is read and
//! decrypted, from any bytes.
#![no_main]

use ciphervec_fuzz::{FACTORING, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&FACTORING.ciphertexts, |b| FACTORING.read_ciphertexts(b), bytes);
    edited(&FACTORING.other_ciphertexts, |b| FACTORING.read_ciphertexts(b), bytes);
});
