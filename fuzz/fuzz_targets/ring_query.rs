//! A query of mode `sealed`, as a server reads it: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&SEALED.query, |b| SEALED.read_query(b), bytes));
