//! Fuzz target: a noise pool is read after its decryption, from any bytes.
#![no_main]

use ciphervec_fuzz::{FACTORING, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&FACTORING.noise_pool, |b| FACTORING.read_noise_pool(b), bytes);
});
