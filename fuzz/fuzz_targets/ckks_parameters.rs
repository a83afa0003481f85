//! A description of CKKS parameters: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.parameters, |b| CKKS.read_parameters(b), bytes);
});
