//! An array of encrypted vectors: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{PAIRS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&PAIRS.vectors, |b| PAIRS.read_array(b), bytes));
