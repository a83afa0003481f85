//! Fuzz target: a batch of sealed records is read, from any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ciphervec_fuzz::records(bytes);
});
