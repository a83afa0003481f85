//! A segment of mode `sealed-index`, as a server reads it: any bytes enter, nothing but a finding
//! leaves.
#![no_main]

use ciphervec_fuzz::{SEALED_INDEX, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED_INDEX.segment,
    |b| SEALED_INDEX.read_segment(b),
    bytes
));
