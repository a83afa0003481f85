//! A server of lookups, as it keeps its tables: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{LOOKUP, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &LOOKUP.tables,
    |b| LOOKUP.read_tables(b),
    bytes
));
