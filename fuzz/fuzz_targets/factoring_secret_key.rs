//! A secret key of the same schemes, as a key file holds it: any bytes enter, nothing but a finding
//! leaves.
#![no_main]

use ciphervec_fuzz::{FACTORING, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&FACTORING.secret_key, |b| FACTORING.read_secret_key(b), bytes);
    edited(&FACTORING.other_secret_key, |b| FACTORING.read_secret_key(b), bytes);
});
