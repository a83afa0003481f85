//! A secret key of ElGamal, as a key file holds it: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{ELGAMAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&ELGAMAL.secret_key, |b| ELGAMAL.read_secret_key(b), bytes);
});
