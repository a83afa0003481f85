//! Fuzz target: a folder's manifest is read, from any bytes, and written again unchanged.
#![no_main]

use ciphervec_fuzz::{Checksum, forged, manifest};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forged(Checksum::Last32, manifest, bytes));
