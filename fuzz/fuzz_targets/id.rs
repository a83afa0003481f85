//! Fuzz target: a record id is read, from any bytes, and written again unchanged.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ciphervec_fuzz::id(bytes);
});
