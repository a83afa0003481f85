//! Fuzz target: a secret key of CKKS is read as a key file holds it, from any bytes.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.secret_key, |b| CKKS.read_secret_key(b), bytes);
});
