//! Fuzz target: a server of lookups is read as it stores its tables, from any bytes.
#![no_main]

use ciphervec_fuzz::{LOOKUP, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &LOOKUP.tables,
    |b| LOOKUP.read_tables(b),
    bytes
));
