//! Fuzz target: the parameters and keys that a server of encrypted pairs receives are read, from
//! any bytes.
#![no_main]

use ciphervec_fuzz::{PAIRS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&PAIRS.server, |b| PAIRS.read_server(b), bytes));
