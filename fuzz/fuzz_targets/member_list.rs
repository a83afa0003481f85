//! A list of members: what is accepted is what the encoder writes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ciphervec_fuzz::member_list(bytes);
});
