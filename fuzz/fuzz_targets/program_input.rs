//! An encrypted input of a program: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{PROGRAM, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &PROGRAM.input,
    |b| PROGRAM.read_input(b),
    bytes
));
