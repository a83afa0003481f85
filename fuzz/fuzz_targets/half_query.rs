//! Fuzz target: a server reads and answers a query for half of an answer, from any bytes.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let tokens = SEALED.tokens.as_ref().expect("a mode with tokens");
    edited(&tokens.query, |b| SEALED.read_query(b), bytes)
});
