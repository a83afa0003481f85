//! A question about half of an answer, as a server reads it: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let tokens = SEALED.tokens.as_ref().expect("a mode with tokens");
    edited(&tokens.query, |b| SEALED.read_query(b), bytes)
});
