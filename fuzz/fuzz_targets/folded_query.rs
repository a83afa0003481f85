//! A question whose clusters are folded, as a server reads it: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{FOLDED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&FOLDED.query, |b| FOLDED.read_query(b), bytes));
