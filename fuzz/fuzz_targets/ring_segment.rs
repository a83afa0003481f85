//! Fuzz target: a server reads a segment of mode `sealed` and answers from it, from any bytes.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED.segment,
    |b| SEALED.read_segment(b),
    bytes
));
