//! Fuzz target: a server reads an input of a program, encrypted or public, and computes with it,
//! from any bytes.
#![no_main]

use ciphervec_fuzz::{PROGRAM, PUBLIC_PROGRAM, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&PROGRAM.input, |b| PROGRAM.read_input(b), bytes);
    edited(&PUBLIC_PROGRAM.input, |b| PUBLIC_PROGRAM.read_input(b), bytes);
});
