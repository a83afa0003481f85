//! Keys that are shared with several people: any bytes enter, nothing but a finding leaves.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ciphervec_fuzz::shared_keys(bytes);
});
