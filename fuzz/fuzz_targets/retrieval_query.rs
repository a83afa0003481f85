//! Fuzz target: a server reads and answers a query of private retrieval, from any bytes.
#![no_main]

use ciphervec_fuzz::{RETRIEVAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&RETRIEVAL.query, |b| RETRIEVAL.read_query(b), bytes);
});
