//! Fuzz target: a public key of CKKS is read, from any bytes, and written again unchanged.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.public_key, |b| CKKS.read_public_key(b), bytes);
});
