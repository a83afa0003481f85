//! Fuzz target: the key holder decrypts the answer of a program, encrypted or in the clear, from any bytes.
#![no_main]

use ciphervec_fuzz::{PROGRAM, PUBLIC_PROGRAM, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&PROGRAM.answer, |b| PROGRAM.read_answer(b), bytes);
    edited(&PUBLIC_PROGRAM.answer, |b| PUBLIC_PROGRAM.read_answer(b), bytes);
});
