//! Fuzz target: the owner reads a sidecar after its decryption, from any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ciphervec_fuzz::sidecar(bytes);
});
