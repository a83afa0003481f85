//! Fuzz target: the description of a lookup is read, from any bytes, and written again unchanged.
#![no_main]

use ciphervec_fuzz::{LOOKUP, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &LOOKUP.description,
    |b| LOOKUP.read_description(b),
    bytes
));
