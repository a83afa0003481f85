//! Fuzz target: ElGamal embeddings with shared noise are read and compared, from any bytes.
#![no_main]

use ciphervec_fuzz::{ELGAMAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&ELGAMAL.shared, |b| ELGAMAL.read_shared(b), bytes);
});
