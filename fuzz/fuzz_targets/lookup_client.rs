//! Fuzz target: a client of lookups is read as a key file holds it, from any bytes.
#![no_main]

use ciphervec_fuzz::{LOOKUP, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &LOOKUP.secret,
    |b| LOOKUP.read_secret(b),
    bytes
));
