//! Roots of unity at small insecure degrees: from coefficients and slots, precision, refusals.

use super::support::{self, numbers};
use ciphervec_he_secret::Error;
use ciphervec_he_secret::ckks::{
    BootstrappingKeys, Ciphertext, Complex, Components, Entropy, Exponential, ExponentialSpec,
    Params, SecretKey,
};
use ciphervec_he_secret::params::Security;
use core::f64::consts::TAU;
use std::sync::Arc;
use std::time::Instant;

/// The layout of the sets to be used, in a small ring.
fn spec(doublings: u32, slots_to_coefficients: usize) -> ExponentialSpec {
    ExponentialSpec {
        log_degree: 10,
        base_bits: if slots_to_coefficients == 0 { 42 } else { 50 },
        levels: 3,
        scale_bits: 42,
        slots_to_coefficients,
        slots_to_coefficients_bits: 42,
        exponential_bits: 49,
        doublings,
        coefficients_to_slots: 3,
        coefficients_to_slots_bits: 48,
        special_primes: 4,
        special_bits: 50,
        digits: 5,
        range: 16.0,
        security: Security::Classical128,
    }
}

pub struct Owner {
    pub exponential: Exponential,
    pub key: SecretKey,
    pub keys: BootstrappingKeys,
}

impl Owner {
    pub fn new(spec: ExponentialSpec) -> Self {
        let exponential = Exponential::insecure_new(spec).unwrap();
        let key = SecretKey::generate(exponential.params()).unwrap();
        let keys = key.exponential_keys(&exponential).unwrap();
        Owner { exponential, key, keys }
    }

    pub fn params(&self) -> &Arc<Params> {
        self.exponential.params()
    }

    pub fn encrypt(&self, values: &[Complex], level: usize) -> Ciphertext {
        support::encrypt(&self.key, values, level)
    }

    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Vec<Complex> {
        support::decrypt(&self.key, ciphertext)
    }
}

/// Differences from the roots of `turns`: the mean square of a part, and the largest.
#[derive(Default)]
struct Errors {
    square: f64,
    count: usize,
    largest: f64,
}

impl Errors {
    fn add(&mut self, actual: &[Complex], turns: impl Iterator<Item = f64>) {
        for (actual, x) in actual.iter().zip(turns) {
            let error = actual - Complex::cis(TAU * x);
            self.square += error.norm_sqr() / 2.0;
            self.largest = self.largest.max(error.norm());
            self.count += 1;
        }
    }

    fn std(&self) -> f64 {
        (self.square / self.count as f64).sqrt()
    }
}

/// Integers over 256, in every coefficient, come out in the slots that are documented.
#[test]
fn coefficients_become_roots_of_unity() {
    for doublings in [1, 3] {
        let owner = Owner::new(spec(doublings, 0));
        let (exponential, plan) = (&owner.exponential, owner.exponential.plan().unwrap());
        assert!(plan.failure_log2 < -128.0, "{plan:?}");
        let degree = owner.params().degree();
        let mut errors = Errors::default();
        for run in 0..8 {
            let turns: Vec<f64> =
                (0..degree).map(|k| ((k * k * 7 + k + run) % 256) as f64 / 256.0).collect();
            let sent = owner.key.encrypt(&exponential.encode(&turns).unwrap()).unwrap();
            assert_eq!((sent.level(), sent.scale()), (0, exponential.base_scale()));
            let both = exponential.from_coefficients(&sent, Components::Both, &owner.keys).unwrap();
            let one = exponential.from_coefficients(&sent, Components::Real, &owner.keys).unwrap();
            assert_eq!((both.len(), one.len()), (2, 1));
            assert_eq!(one[0], both[0]);
            for (half, root) in both.iter().enumerate() {
                assert_eq!((root.level(), root.slots()), (plan.level, plan.slots));
                assert_eq!(root.scale(), owner.params().scale(plan.level));
                let mut expected = vec![0.0; plan.slots];
                for k in 0..plan.slots {
                    expected[exponential.slot_of(k)] = turns[half * plan.slots + k];
                }
                let before = errors.largest;
                errors.add(&owner.decrypt(root), expected.into_iter());
                assert!(errors.largest.max(before) <= root.noise().bound / root.scale());
            }
        }
        holds(&errors, &plan);
    }
}

fn holds(errors: &Errors, plan: &ciphervec_he_secret::ckks::ExponentialPlan) {
    let measured = -errors.std().log2();
    let said = || format!("{measured:.2} bits, worst {:.2}, by {plan:?}", -errors.largest.log2());
    assert!(measured >= plan.precision_bits - 0.2, "{}", said());
    assert!(measured <= plan.precision_bits + 2.0, "{}", said());
    assert!(-errors.largest.log2() >= plan.bound_bits);
}

/// Real and imaginary parts, beyond 1 as well: only what they are modulo 1 counts.
#[test]
fn slots_become_roots_of_unity() {
    let owner = Owner::new(spec(3, 2));
    let (exponential, plan) = (&owner.exponential, owner.exponential.plan().unwrap());
    let mut errors = Errors::default();
    for run in 0..8 {
        let values = numbers(owner.params(), plan.slots, run);
        let spent = owner.encrypt(&values, plan.lowest_level);
        let roots = exponential.from_slots(&spent, Components::Both, &owner.keys).unwrap();
        let parts: [fn(&Complex) -> f64; 2] = [|z| z.re, |z| z.im];
        for (root, part) in roots.iter().zip(parts) {
            errors.add(&owner.decrypt(root), values.iter().map(part));
            assert!(errors.largest <= root.noise().bound / root.scale());
        }
    }
    holds(&errors, &plan);
    // Few slots repeat; and a sum over 5 modulo 1.
    let large: Vec<Complex> = (0..16).map(|k| Complex::new(f64::from(k) / 3.0, 9.0)).collect();
    let spent = owner.encrypt(&large, plan.lowest_level + 1);
    let roots = exponential.from_slots(&spent, Components::Real, &owner.keys).unwrap();
    assert_eq!((roots.len(), roots[0].slots(), roots[0].level()), (1, 16, plan.level));
    let mut errors = Errors::default();
    errors.add(&owner.decrypt(&roots[0]), large.iter().map(|z| z.re));
    assert!(errors.largest <= roots[0].noise().bound / roots[0].scale());
    assert!(errors.largest < f64::exp2(-18.0), "2^{:.1}", errors.largest.log2());
}

/// A range of 6 in place of 16: every 4,000th coefficient is lost. Seeds are fixed, so that the
/// number is.
#[test]
fn a_range_that_is_too_short_fails_as_often_as_derived() {
    let weak = ExponentialSpec { range: 6.0, ..spec(2, 0) };
    let exponential = Exponential::insecure_new(weak).unwrap();
    let key = SecretKey::from_seed(exponential.params(), &[31; 32]);
    let mut entropy = Entropy::insecure_fixed(&[32; 32]);
    let keys = key.exponential_keys_with(&exponential, &mut entropy).unwrap();
    let plan = exponential.plan().unwrap();
    let (mut lost, runs) = (0, 60);
    let turns: Vec<f64> = (0..2 * plan.slots).map(|k| (k % 16) as f64 / 16.0).collect();
    for _ in 0..runs {
        let plaintext = exponential.encode(&turns).unwrap();
        let sent = key.encrypt_seeded_with(&plaintext, &mut entropy).unwrap().expand();
        for (half, root) in exponential
            .from_coefficients(&sent, Components::Both, &keys)
            .unwrap()
            .iter()
            .enumerate()
        {
            let slots = key.decrypt(root).unwrap().decode_complex();
            lost += (0..plan.slots)
                .filter(|&k| {
                    let expected = Complex::cis(TAU * turns[half * plan.slots + k]);
                    (slots[exponential.slot_of(k)] - expected).norm() > (-plan.bound_bits).exp2()
                })
                .count();
        }
    }
    let expected = plan.failure_log2.exp2() * f64::from(runs);
    assert!(lost > 0, "none lost");
    assert!(lost as f64 <= expected + 5.0 * expected.sqrt(), "{lost} lost, {expected} expected");
}

#[test]
fn what_cannot_become_a_root_is_refused() {
    let owner = Owner::new(spec(3, 0));
    let exponential = &owner.exponential;
    let sent = owner.key.encrypt(&exponential.encode(&[0.25]).unwrap()).unwrap();
    let error = exponential.from_slots(&sent, Components::Real, &owner.keys).unwrap_err();
    assert!(matches!(error, Error::Level { .. }), "{error}");
    let other = owner.encrypt(&[Complex::from(0.5)], 1);
    let error = exponential.from_coefficients(&other, Components::Real, &owner.keys).unwrap_err();
    assert!(matches!(error, Error::Scale { .. }), "{error}");
    let stranger = SecretKey::generate(owner.params()).unwrap();
    let keys = stranger.exponential_keys(exponential).unwrap();
    let error = exponential.from_coefficients(&sent, Components::Real, &keys).unwrap_err();
    assert!(matches!(error, Error::WrongKey { .. }), "{error}");
    assert!(matches!(exponential.encode(&[f64::NAN]), Err(Error::Range { .. })));
    assert!(matches!(exponential.encode(&vec![0.0; 1025]), Err(Error::Range { .. })));
    let owner = Owner::new(spec(3, 2));
    let large = owner.encrypt(&[Complex::from(0.5)], 2).with_magnitude(300.0).unwrap();
    let error = owner.exponential.from_slots(&large, Components::Real, &owner.keys).unwrap_err();
    assert!(matches!(error, Error::Range { .. }), "{error}");
    let wide = ExponentialSpec { special_primes: 4, digits: 5, ..ExponentialSpec::degree_32768() };
    assert!(matches!(Exponential::new(wide), Err(Error::Insecure { .. })));
}

/// The sets to be used.
#[test]
#[ignore = "two minutes and 4 GB; run in release"]
fn sets_to_be_used_are_as_precise_as_their_plans_say() {
    for spec in [ExponentialSpec::degree_32768(), ExponentialSpec::degree_65536()] {
        let owner = {
            let exponential = Exponential::new(spec).unwrap();
            let key = SecretKey::generate(exponential.params()).unwrap();
            let keys = key.exponential_keys(&exponential).unwrap();
            Owner { exponential, key, keys }
        };
        let (exponential, plan) = (&owner.exponential, owner.exponential.plan().unwrap());
        let turns: Vec<f64> = (0..plan.slots).map(|k| (k * 77 % 256) as f64 / 256.0).collect();
        let sent = owner.key.encrypt(&exponential.encode(&turns).unwrap()).unwrap();
        let start = Instant::now();
        let roots = exponential.from_coefficients(&sent, Components::Real, &owner.keys).unwrap();
        println!("{:.2} s", start.elapsed().as_secs_f64());
        let slots = owner.decrypt(&roots[0]);
        let actual: Vec<Complex> = (0..plan.slots).map(|k| slots[exponential.slot_of(k)]).collect();
        let mut errors = Errors::default();
        errors.add(&actual, turns.iter().copied());
        holds(&errors, &plan);
    }
}
