//! A keyed table's file, as a server and a publisher read it: whatever is accepted is what would be written again.
#![no_main]

use ciphervec_fuzz::{KEYED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&KEYED.file, |b| KEYED.read_file(b), bytes));
