//! Fuzz target: the key from the half ring of CKKS to the whole one is read, from any bytes.
#![no_main]

use ciphervec_fuzz::{CKKS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&CKKS.ring_switch_key, |b| CKKS.read_ring_switch_key(b), bytes);
});
