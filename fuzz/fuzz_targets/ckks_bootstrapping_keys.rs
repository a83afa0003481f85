//! Bootstrapping keys of CKKS, whole and as they come: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.bootstrapping_keys, |b| CKKS.read_bootstrapping_keys(b), bytes);
});
