//! Fuzz target: a file of keys that are shared with several people is read, from any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ciphervec_fuzz::shared_keys(bytes);
});
