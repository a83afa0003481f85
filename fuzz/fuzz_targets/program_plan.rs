//! Fuzz target: the plan of a program is read, from any bytes, and written again unchanged.
#![no_main]

use ciphervec_fuzz::{PROGRAM, PUBLIC_PROGRAM, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&PROGRAM.plan, |b| PROGRAM.read_plan(b), bytes);
    edited(&PUBLIC_PROGRAM.plan, |b| PUBLIC_PROGRAM.read_plan(b), bytes);
});
