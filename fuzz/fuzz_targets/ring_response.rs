//! A response of mode `sealed`, as its owner reads it: any bytes enter, nothing but a finding
//! leaves.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED.response,
    |b| SEALED.read_response(b),
    bytes
));
