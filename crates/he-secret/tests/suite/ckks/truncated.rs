//! Truncated ciphertexts: slots are off by what is derived, and what does not fit is refused.

use super::support::spec;
use ciphervec_he_secret::ckks::{
    Ciphertext, Encoding, Evaluator, Params, ParamsSpec, Plaintext, Ring, SecretKey, Truncation,
};
use std::sync::Arc;

fn params(ring: Ring) -> Arc<Params> {
    let spec = ParamsSpec { scale_bits: 36, special_primes: 0, ..spec(ring, 1, 1) };
    Params::insecure_new(spec).unwrap()
}

/// Slots are off as the derivation says, by parts and in all: the root mean square is its
/// standard deviation, and no slot of many is beyond the bound.
#[test]
fn slots_are_off_by_what_is_derived() {
    for ring in [Ring::ConjugateInvariant, Ring::Standard] {
        let params = params(ring);
        let scale = f64::exp2(44.0);
        for bits in [vec![20, 50], vec![50, 24], vec![22, 29]] {
            let truncation = Truncation::of(&params, bits).unwrap();
            let (mut square, mut most, mut count) = (0.0, 0.0f64, 0);
            for _ in 0..24 {
                let key = SecretKey::generate(&params).unwrap();
                let numbers: Vec<f64> = (0..params.max_slots()).map(|i| (i as f64).sin()).collect();
                let encoding =
                    Encoding { scale: Some(scale), level: Some(0), ..Encoding::default() };
                let plain = Plaintext::encode_with(&params, &numbers, &encoding).unwrap();
                let whole = key.encrypt(&plain).unwrap();
                let exact = key.decrypt(&whole).unwrap().decode_complex();
                let mut bytes = Vec::new();
                whole.truncate(&truncation, &mut bytes).unwrap();
                assert_eq!(bytes.len(), truncation.bytes());
                let place = (whole.key_id(), scale);
                let found =
                    Ciphertext::from_truncated(&params, &truncation, place, &bytes).unwrap();
                for (a, b) in key.decrypt(&found).unwrap().decode_complex().iter().zip(&exact) {
                    let off = (a.re - b.re).abs();
                    square += off * off;
                    most = most.max(off);
                    count += 1;
                }
            }
            let found = (square / f64::from(count)).sqrt();
            let ratio = found / truncation.deviation(scale);
            assert!((0.9..1.1).contains(&ratio), "{ring:?} {truncation:?}: {ratio}");
            assert!(most <= truncation.error(scale), "{ring:?}: {most:e}");
            assert!(most >= truncation.error(scale) / 20.0, "{ring:?}: {most:e}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let params = params(Ring::Standard);
    for bits in [vec![], vec![20], vec![0, 20], vec![20, 51], vec![20; 4]] {
        assert!(Truncation::of(&params, bits).is_err());
    }
    let truncation = Truncation::of(&params, vec![20, 30]).unwrap();
    let key = SecretKey::generate(&params).unwrap();
    let plain = Plaintext::encode(&params, &[1.0]).unwrap();
    let whole = key.encrypt(&plain).unwrap();
    let mut bytes = Vec::new();
    assert!(whole.truncate(&truncation, &mut bytes).is_err(), "level 1");
    let evaluator = Evaluator::without_keys(params.clone());
    let low = evaluator.drop_to(&whole, 0).unwrap();
    low.truncate(&truncation, &mut bytes).unwrap();
    let three = Truncation::of(&params, vec![20, 30, 40]).unwrap();
    assert!(low.truncate(&three, &mut Vec::new()).is_err());
    let read = |scale, bytes: &[u8]| {
        Ciphertext::from_truncated(&params, &truncation, (key.key_id(), scale), bytes).is_ok()
    };
    assert!(read(1.0, &bytes) && !read(1.0, &bytes[1..]) && !read(0.0, &bytes));
    assert!(!read(f64::NAN, &bytes) && !read(f64::INFINITY, &bytes));
}
