//! Fuzz target: a server reads and answers a query of mode `sealed` that names segments, from any bytes.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED.routed_query,
    |b| SEALED.read_query(b),
    bytes
));
