//! Fuzz target: a server reads the evaluation keys of an index, from any bytes.
#![no_main]

use ciphervec_fuzz::{SEALED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(
    SEALED.evaluation_keys.as_ref().expect("mode sealed has keys"),
    |b| SEALED.read_evaluation_keys(b),
    bytes
));
