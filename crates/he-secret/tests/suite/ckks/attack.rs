//! The attack of Li and Micciancio (IACR ePrint 2020/1533): exact results give the key away,
//! published ones do not.

use super::support::Owner;
use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::Error;
use ciphervec_he_secret::ckks::{
    Ciphertext, Complex, Encoding, Expected, Noise, Params, ParamsSpec, Plaintext, PublishPolicy,
    Ring, SecretKey,
};
use ciphervec_he_secret::params::Security;
use ciphervec_he_secret::wire::HEADER_LEN;

const SEED: [u8; 32] = [5; 32];

/// One level of 30 bits: the numbers fit doubles with room to spare, as an attacker would like it.
fn owner() -> Owner {
    let params = Params::insecure_new(ParamsSpec {
        log_degree: 10,
        ring: Ring::Standard,
        base_bits: 50,
        scale_bits: 48,
        levels: 0,
        special_primes: 1,
        special_bits: 50,
        digits: 1,
        security: Security::Classical128,
    })
    .unwrap();
    Owner { key: SecretKey::from_seed(&params, &SEED), params }
}

/// (Δ m + e − c_0)/c_1 for the polynomial that a full vector of slots encodes.
fn recover(params: &std::sync::Arc<Params>, c: &Ciphertext, slots: &[Complex]) -> Vec<i64> {
    let encoding = Encoding { scale: Some(c.scale()), magnitude: Some(2.0), ..Encoding::default() };
    let encoded = Plaintext::encode_complex_with(params, slots, &encoding).unwrap();
    let q = params.prime(0);
    let mut secret = encoded.poly().clone();
    secret.sub_assign(&c.parts()[0]);
    let linear = c.parts()[1].limb(0);
    for (value, c1) in secret.limb_mut(0).iter_mut().zip(linear) {
        *value = q.mul(*value, q.inv(*c1).unwrap_or(0));
    }
    let coefficients = secret.into_coefficients();
    coefficients.limb(0).iter().map(|value| q.to_centered(*value)).collect()
}

fn agreement(found: &[i64]) -> usize {
    let mut secret = vec![0i8; found.len()];
    Stream::new(&SEED, 0).ternary(&mut secret);
    found.iter().zip(&secret).filter(|(found, s)| **found == i64::from(**s)).count()
}

#[test]
fn a_decryption_gives_the_key_away_and_a_published_result_does_not() {
    let owner = owner();
    let slots = owner.params.max_slots();
    let values: Vec<Complex> =
        (0..slots).map(|i| Complex::new((i as f64).sin() / 2.0, (i as f64).cos() / 2.0)).collect();
    let ciphertext = owner.encrypt(&values, 0);
    let exact = owner.key.decrypt(&ciphertext).unwrap().decode_complex();
    assert_eq!(agreement(&recover(&owner.params, &ciphertext, &exact)), owner.params.degree());

    let policy = PublishPolicy { uses: 4, statistical_bits: 20 };
    let published = owner.key.publish(&ciphertext, &ciphertext.expected(), slots, policy).unwrap();
    // A third of a ternary secret is guessed by saying zero; residues of noise hit −1, 0 or 1
    // never.
    assert_eq!(agreement(&recover(&owner.params, &ciphertext, &published.values)), 0);
    // The numbers are still there: 8 standard deviations and the rounding.
    for (published_value, value) in published.values.iter().zip(&values) {
        assert!((*published_value - *value).norm() < 12.0 * published.deviation);
    }
    // The flood is as deep as the policy says.
    let bound = ciphertext.noise().bound / ciphertext.scale();
    let depth = published.deviation / (bound * (4.0 * slots as f64).sqrt());
    assert!((depth / f64::exp2(19.0) - 1.0).abs() < 1e-12);
}

#[test]
fn a_key_publishes_what_its_policy_allows() {
    let owner = owner();
    let ciphertext = owner.encrypt(&[Complex::from(0.5)], 0);
    let fresh = ciphertext.expected();
    let policy = PublishPolicy { uses: 3, statistical_bits: 20 };
    for _ in 0..2 {
        owner.key.publish(&ciphertext, &fresh, 1, policy).unwrap();
    }
    let other = PublishPolicy { uses: 5, ..policy };
    assert!(matches!(owner.key.publish(&ciphertext, &fresh, 1, other), Err(Error::Range { .. })));
    // The count is part of the key's bytes.
    let key = SecretKey::from_bytes(&owner.params, &owner.key.to_bytes()).unwrap();
    assert_eq!(key.published().used, 2);
    key.publish(&ciphertext, &fresh, 1, policy).unwrap();
    assert_eq!(
        key.publish(&ciphertext, &fresh, 1, policy),
        Err(Error::Published { allowed: 3, used: 3 })
    );
    // Noise as large as the message is refused, and does not count.
    let deep = PublishPolicy { uses: 3, statistical_bits: 60 };
    assert!(matches!(owner.key.publish(&ciphertext, &fresh, 1, deep), Err(Error::Range { .. })));
    assert!(matches!(owner.key.publish(&ciphertext, &fresh, 2, policy), Err(Error::Range { .. })));
    assert_eq!(owner.key.published().used, 2);
}

#[test]
fn the_flood_is_gaussian() {
    let owner = owner();
    let values = vec![Complex::default(); owner.params.max_slots()];
    let ciphertext = owner.encrypt(&values, 0);
    let policy = PublishPolicy { uses: 1, statistical_bits: 20 };
    let published =
        owner.key.publish(&ciphertext, &ciphertext.expected(), values.len(), policy).unwrap();
    let parts = published.values.iter().flat_map(|value| [value.re, value.im]);
    let scaled: Vec<f64> = parts.map(|part| part / published.deviation).collect();
    let moment =
        |power: i32| scaled.iter().map(|x| x.powi(power)).sum::<f64>() / scaled.len() as f64;
    // Of 1,024 numbers: five standard deviations of each sample moment.
    let deviations = 5.0 / 32.0;
    assert!(moment(1).abs() < deviations);
    assert!((moment(2) - 1.0).abs() < deviations * 2f64.sqrt());
    assert!((moment(4) - 3.0).abs() < deviations * 96f64.sqrt());
}

/// A ciphertext and what it says of itself, with another bound on its error, by position.
fn claiming(ciphertext: &Ciphertext, std: f64, bound: f64) -> Vec<u8> {
    let mut bytes = ciphertext.to_bytes();
    let errors = HEADER_LEN + 2 + 4 + 4 + 8;
    bytes[errors..errors + 8].copy_from_slice(&std.to_le_bytes());
    bytes[errors + 8..errors + 16].copy_from_slice(&bound.to_le_bytes());
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..HEADER_LEN - 32]).update(&bytes[HEADER_LEN..]);
    bytes[HEADER_LEN - 32..HEADER_LEN].copy_from_slice(hasher.finalize().as_bytes());
    bytes
}

#[test]
fn a_flood_is_never_sized_by_what_a_ciphertext_says_of_itself() {
    let owner = owner();
    let slots = owner.params.max_slots();
    let fresh = owner.encrypt(&vec![Complex::from(0.5); slots], 0);
    let noise = *fresh.noise();
    let read = |std, bound| Ciphertext::from_bytes(&owner.params, &claiming(&fresh, std, bound));
    // Less than a fresh ciphertext has is refused wherever bytes are read, by either figure.
    for (std, bound) in
        [(1e-30, 1e-30), (noise.std, noise.bound / 1.01), (noise.std / 1.01, noise.bound)]
    {
        let error = read(std, bound).unwrap_err().to_string();
        assert!(error.contains("less than that of a fresh ciphertext"), "{error}");
    }
    // The flood is that of the computation, and what says that its error is larger is none of it.
    let policy = PublishPolicy { uses: 4, statistical_bits: 20 };
    let honest = read(noise.std, noise.bound).unwrap();
    let published = owner.key.publish(&honest, &fresh.expected(), slots, policy).unwrap();
    let depth = published.deviation * fresh.scale() / (noise.bound * (4.0 * slots as f64).sqrt());
    assert!((depth / f64::exp2(19.0) - 1.0).abs() < 1e-12);
    let large = read(noise.std, 1e12).unwrap();
    let refused = owner.key.publish(&large, &fresh.expected(), slots, policy);
    assert!(matches!(refused, Err(Error::Range { .. })), "{refused:?}");
    // An expectation below any ciphertext's floods as much as the least there is.
    let none = Expected { noise: Noise { std: 0.0, bound: 0.0 }, ..fresh.expected() };
    assert_eq!(
        owner.key.flood_deviation(&none, slots, policy),
        owner.key.flood_deviation(&fresh.expected(), slots, policy)
    );
    // Another computation's result is none of this one's.
    let other = Expected { scale: 2.0 * fresh.scale(), ..fresh.expected() };
    let error = owner.key.publish(&fresh, &other, slots, policy).unwrap_err().to_string();
    assert!(error.contains("as the expected computation gives it"), "{error}");
    assert_eq!(owner.key.published().used, 1);
}

#[test]
fn numbers_beyond_their_magnitude_are_refused_and_count() {
    let owner = owner();
    let ciphertext = owner.encrypt(&[Complex::from(0.5)], 0);
    let ciphertext = ciphertext.with_magnitude(0.25).unwrap();
    let expected = ciphertext.expected();
    let policy = PublishPolicy { uses: 2, statistical_bits: 10 };
    for used in 1..=2 {
        let refused = owner.key.publish(&ciphertext, &expected, 1, policy);
        assert!(matches!(refused, Err(Error::Outside { .. })), "{refused:?}");
        assert_eq!(owner.key.published().used, used);
    }
    let refused = owner.key.publish(&ciphertext, &expected, 1, policy);
    assert_eq!(refused, Err(Error::Published { allowed: 2, used: 2 }));
}
