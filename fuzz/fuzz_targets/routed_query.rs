//! A query of mode `sealed` that names segments, as a server reads it: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    &SEALED.routed_query,
    |b| SEALED.read_query(b),
    bytes
));
