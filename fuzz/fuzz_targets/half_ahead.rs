//! Fuzz target: the owner makes a token of the half of an answer that it asked for ahead, from any bytes.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let tokens = SEALED.tokens.as_ref().expect("a mode with tokens");
    edited(&tokens.ahead, |b| SEALED.read_ahead(b), bytes)
});
