//! Fuzz target: an array of vectors under CKKS is read and decrypted, from any bytes.
#![no_main]

use ciphervec_fuzz::{PAIRS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&PAIRS.vectors, |b| PAIRS.read_array(b), bytes));
