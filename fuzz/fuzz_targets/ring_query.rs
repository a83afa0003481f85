//! Fuzz target: a server reads and answers a query of mode `sealed`, from any bytes.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&SEALED.query, |b| SEALED.read_query(b), bytes));
