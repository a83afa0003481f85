//! Fuzz target: a person's public key is read, from any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ciphervec_fuzz::recipient(bytes);
});
