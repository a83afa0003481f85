//! Fuzz target: a server reads and answers a query whose clusters it is to fold, from any bytes.
#![no_main]

use ciphervec_fuzz::{FOLDED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&FOLDED.query, |b| FOLDED.read_query(b), bytes));
