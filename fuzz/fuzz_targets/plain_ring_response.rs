//! A response of mode `sealed-query`, as its owner reads it: any bytes enter, nothing but a finding
//! leaves.
#![no_main]

use ciphervec_fuzz::{SEALED_QUERY, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED_QUERY.response,
    |b| SEALED_QUERY.read_response(b),
    bytes
));
