//! Fuzz target: a server reads the evaluation keys of a program, from any bytes.
#![no_main]

use ciphervec_fuzz::{PROGRAM, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&PROGRAM.keys, |b| PROGRAM.read_keys(b), bytes));
