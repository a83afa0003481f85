//! A sidecar after decryption: any bytes enter, nothing but a finding leaves.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ciphervec_fuzz::sidecar(bytes);
});
