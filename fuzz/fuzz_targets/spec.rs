//! Fuzz target: the public description of an index is read, from any bytes.
#![no_main]

use ciphervec_fuzz::{Checksum, forged, spec};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forged(Checksum::Frame, spec, bytes));
