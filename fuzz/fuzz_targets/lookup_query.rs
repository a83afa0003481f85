//! Fuzz target: a server reads and answers a query of encrypted counts, from any bytes.
#![no_main]

use ciphervec_fuzz::{LOOKUP, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&LOOKUP.query, |b| LOOKUP.read_query(b), bytes));
