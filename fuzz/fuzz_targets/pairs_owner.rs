//! Fuzz target: the owner of encrypted pairs is read as a key file holds it, from any bytes.
#![no_main]

use ciphervec_fuzz::{PAIRS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&PAIRS.secret, |b| PAIRS.read_owner(b), bytes));
