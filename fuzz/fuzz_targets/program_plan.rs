//! The plan of a program: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{PROGRAM, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&PROGRAM.plan, |b| PROGRAM.read_plan(b), bytes));
