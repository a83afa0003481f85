//! Fuzz target: a server reads and answers a query of mode `sealed-index`, from any bytes.
#![no_main]

use ciphervec_fuzz::{SEALED_INDEX, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED_INDEX.query,
    |b| SEALED_INDEX.read_query(b),
    bytes
));
