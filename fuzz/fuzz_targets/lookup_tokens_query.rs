//! Fuzz target: a server reads and answers a query of encrypted indices, from any bytes.
#![no_main]

use ciphervec_fuzz::{LOOKUP_TOKENS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &LOOKUP_TOKENS.query,
    |b| LOOKUP_TOKENS.read_query(b),
    bytes
));
