//! An answer about chosen clusters, as its owner reads it: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{FOLDED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&FOLDED.response, |b| FOLDED.read_response(b), bytes));
