//! The filter tags of a segment: any bytes enter, nothing but a finding leaves.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ciphervec_fuzz::filter_tags(bytes);
});
