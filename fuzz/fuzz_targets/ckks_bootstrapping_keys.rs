//! Fuzz target: a server reads bootstrapping keys of CKKS, whole and from a stream, from any bytes.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.bootstrapping_keys, |b| CKKS.read_bootstrapping_keys(b), bytes);
});
