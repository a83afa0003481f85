//! Fuzz target: a server reads and answers a query of mode `open`, from any bytes.
#![no_main]

use ciphervec_fuzz::{OPEN, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&OPEN.query, |b| OPEN.read_query(b), bytes));
