//! The description of a lookup: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{LOOKUP, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &LOOKUP.description,
    |b| LOOKUP.read_description(b),
    bytes
));
