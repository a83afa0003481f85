//! ElGamal embeddings with shared noise, read and compared: any bytes enter, nothing but a finding
//! leaves.
#![no_main]

use ciphervec_fuzz::{ELGAMAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&ELGAMAL.shared, |b| ELGAMAL.read_shared(b), bytes);
});
