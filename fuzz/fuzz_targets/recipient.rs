//! A person's public key: any bytes enter, nothing but a finding leaves.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ciphervec_fuzz::recipient(bytes);
});
