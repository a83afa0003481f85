//! A wrapped segment key: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{WRITERS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&WRITERS.wrap, |b| WRITERS.read_wrap(b), bytes));
