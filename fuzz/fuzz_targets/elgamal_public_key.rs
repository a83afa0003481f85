//! A public key of ElGamal: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{ELGAMAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&ELGAMAL.public_key, |b| ELGAMAL.read_public_key(b), bytes);
});
