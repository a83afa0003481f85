//! Fuzz target: a secret key of Paillier, Damgård–Jurik or Okamoto–Uchiyama is read as a key file
//! holds it, from any bytes.
#![no_main]

use ciphervec_fuzz::{FACTORING, edited};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    edited(&FACTORING.secret_key, |b| FACTORING.read_secret_key(b), bytes);
    edited(&FACTORING.other_secret_key, |b| FACTORING.read_secret_key(b), bytes);
});
