//! A client of lookups, as a key file holds it: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{LOOKUP, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &LOOKUP.secret,
    |b| LOOKUP.read_secret(b),
    bytes
));
