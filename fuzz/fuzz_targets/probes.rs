//! Fuzz target: a server reads plain probes, from any bytes.
#![no_main]

use ciphervec_fuzz::{SIMILARITY, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&SIMILARITY.probes, |b| SIMILARITY.read_probes(b), bytes);
});
