//! Fuzz target: a description of CKKS parameters is read, from any bytes, and written again
//! unchanged.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.parameters, |b| CKKS.read_parameters(b), bytes);
});
