//! A secret key of CKKS, as a key file holds it: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.secret_key, |b| CKKS.read_secret_key(b), bytes);
});
