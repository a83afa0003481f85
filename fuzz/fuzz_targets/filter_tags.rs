//! Fuzz target: a server reads the filter tags of a segment, from any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ciphervec_fuzz::filter_tags(bytes);
});
