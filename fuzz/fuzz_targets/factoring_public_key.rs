//! Fuzz target: a public key of Paillier, Damgård–Jurik or Okamoto–Uchiyama is read, from any
//! bytes.
#![no_main]

use ciphervec_fuzz::{FACTORING, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&FACTORING.public_key, |b| FACTORING.read_public_key(b), bytes);
    edited(&FACTORING.other_public_key, |b| FACTORING.read_public_key(b), bytes);
});
