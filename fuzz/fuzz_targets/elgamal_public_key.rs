//! Fuzz target: a public key of ElGamal is read, from any bytes, and written again unchanged.
#![no_main]

use ciphervec_fuzz::{ELGAMAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&ELGAMAL.public_key, |b| ELGAMAL.read_public_key(b), bytes);
});
