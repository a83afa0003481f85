//! Half of an answer that was asked for ahead, as its owner makes a token of it: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let tokens = SEALED.tokens.as_ref().expect("a mode with tokens");
    edited(&tokens.ahead, |b| SEALED.read_ahead(b), bytes)
});
