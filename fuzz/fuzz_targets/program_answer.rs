//! The encrypted answer of a program: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{PROGRAM, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &PROGRAM.answer,
    |b| PROGRAM.read_answer(b),
    bytes
));
