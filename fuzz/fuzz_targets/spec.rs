//! The public description of an index: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{Checksum, forged, spec};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forged(Checksum::Frame, spec, bytes));
