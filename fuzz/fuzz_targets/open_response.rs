//! A response of mode `open`, as its owner reads it: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{OPEN, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &OPEN.response,
    |b| OPEN.read_response(b),
    bytes
));
