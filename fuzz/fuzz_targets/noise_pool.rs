//! A noise pool after decryption: any bytes enter, nothing but a finding leaves.
#![no_main]

use ciphervec_fuzz::{FACTORING, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&FACTORING.noise_pool, |b| FACTORING.read_noise_pool(b), bytes);
});
