//! A folder's manifest: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{Checksum, forged, manifest};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forged(Checksum::Last32, manifest, bytes));
