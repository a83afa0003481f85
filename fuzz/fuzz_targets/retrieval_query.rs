//! A query of private retrieval, as a server reads and answers it: any bytes enter, nothing but a finding
//! leaves.
#![no_main]

use ciphervec_fuzz::{RETRIEVAL, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&RETRIEVAL.query, |b| RETRIEVAL.read_query(b), bytes);
});
