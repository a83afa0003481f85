//! What a server computes a program with: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{PROGRAM, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&PROGRAM.keys, |b| PROGRAM.read_keys(b), bytes));
