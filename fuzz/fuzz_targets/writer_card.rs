//! Fuzz target: a writer's card is read, from any bytes, and written again unchanged.
#![no_main]

use ciphervec_fuzz::{WRITERS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&WRITERS.card, |b| WRITERS.read_card(b), bytes));
