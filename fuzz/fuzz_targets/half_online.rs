//! Fuzz target: the owner completes an answer with its other half and opens it, from any bytes.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let tokens = SEALED.tokens.as_ref().expect("a mode with tokens");
    edited(&tokens.online, |b| SEALED.read_online(b), bytes)
});
