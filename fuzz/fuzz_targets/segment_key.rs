//! Fuzz target: a wrapped segment key is read and not opened, from any bytes.
#![no_main]

use ciphervec_fuzz::{WRITERS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&WRITERS.wrap, |b| WRITERS.read_wrap(b), bytes));
