//! The owner of encrypted pairs, as a key file holds it: any bytes enter, nothing but a finding
//! leaves.
#![no_main]

use ciphervec_fuzz::{PAIRS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&PAIRS.secret, |b| PAIRS.read_owner(b), bytes));
