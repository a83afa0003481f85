//! A query of mode `open`, as a server reads it: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{OPEN, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&OPEN.query, |b| OPEN.read_query(b), bytes));
