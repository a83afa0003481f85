//! Fuzz target: a key file is read without its passphrase, from any bytes.
#![no_main]

use ciphervec_fuzz::{Checksum, forged, key_file};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forged(Checksum::Last32, key_file, bytes));
