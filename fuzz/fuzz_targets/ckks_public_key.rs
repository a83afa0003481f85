//! A public key of CKKS: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.public_key, |b| CKKS.read_public_key(b), bytes);
});
