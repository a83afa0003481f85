//! A bucket of a keyed table, as the client reads it from an answer: none but the publisher's is accepted.
#![no_main]

use ciphervec_fuzz::{KEYED, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&KEYED.bucket, |b| KEYED.read_bucket(b), bytes));
