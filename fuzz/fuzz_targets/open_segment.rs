//! Fuzz target: a server reads a segment of mode `open` and answers from it, from any bytes.
#![no_main]

use ciphervec_fuzz::{OPEN, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&OPEN.segment, |b| OPEN.read_segment(b), bytes));
