//! A writer's card: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{WRITERS, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edited(&WRITERS.card, |b| WRITERS.read_card(b), bytes));
