//! Fuzz target: a server reads a segment of mode `sealed-index` and answers from it, from any
//! bytes.
#![no_main]

use ciphervec_fuzz::{SEALED_INDEX, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED_INDEX.segment,
    |b| SEALED_INDEX.read_segment(b),
    bytes
));
