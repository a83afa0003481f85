//! A query of encrypted indices: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{LOOKUP_TOKENS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &LOOKUP_TOKENS.query,
    |b| LOOKUP_TOKENS.read_query(b),
    bytes
));
