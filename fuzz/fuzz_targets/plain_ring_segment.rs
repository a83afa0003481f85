//! Fuzz target: a server reads a segment of mode `sealed-query` and answers from it, from any
//! bytes.
#![no_main]

use ciphervec_fuzz::{SEALED_QUERY, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED_QUERY.segment,
    |b| SEALED_QUERY.read_segment(b),
    bytes
));
