//! Fuzz target: a secret key of ElGamal is read as a key file holds it, from any bytes.
#![no_main]

use ciphervec_fuzz::{ELGAMAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&ELGAMAL.secret_key, |b| ELGAMAL.read_secret_key(b), bytes);
});
