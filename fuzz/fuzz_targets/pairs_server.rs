//! What a server of encrypted pairs gets: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{PAIRS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&PAIRS.server, |b| PAIRS.read_server(b), bytes));
