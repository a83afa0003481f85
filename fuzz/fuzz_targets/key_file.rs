//! A key file without its passphrase: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{Checksum, forged, key_file};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forged(Checksum::Last32, key_file, bytes));
