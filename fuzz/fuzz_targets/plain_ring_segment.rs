//! A segment of mode `sealed-query`, as a server reads it: any bytes enter, nothing but a finding
//! leaves.
#![no_main]

use ciphervec_fuzz::{SEALED_QUERY, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED_QUERY.segment,
    |b| SEALED_QUERY.read_segment(b),
    bytes
));
