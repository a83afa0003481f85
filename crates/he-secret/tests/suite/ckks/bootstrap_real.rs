//! Bootstrapping of real slots at small insecure degrees: precision, failures, keys, refusals.

use super::support::numbers;
use ciphervec_he_secret::Error;
use ciphervec_he_secret::ckks::{
    BootstrapPlan, BootstrapSpec, Bootstrapper, BootstrappingKeys, Ciphertext, Encoding, Entropy,
    Evaluator, Exponential, KeyPlan, Params, Plaintext, Ring, SecretKey,
};
use ciphervec_he_secret::params::Security;
use std::sync::Arc;
use std::time::Instant;

/// The layout of the sets to be used, in a small ring.
fn spec() -> BootstrapSpec {
    BootstrapSpec {
        ring: Ring::ConjugateInvariant,
        log_degree: 10,
        log_slots: 10,
        levels: 2,
        scale_bits: 40,
        slots_to_coefficients: 2,
        slots_to_coefficients_bits: 42,
        reduction_bits: 49,
        reduction_top_bits: 49,
        reduction_rise: 1,
        doublings: 0,
        straight: false,
        inverse_sine: false,
        coefficients_to_slots: 3,
        coefficients_to_slots_bits: 48,
        key_cost: 2,
        special_primes: 4,
        special_bits: 50,
        digits: 6,
        range: 31.0,
        iterations: 1,
        residual_bits: 0,
        security: Security::Classical128,
    }
}

struct Owner {
    bootstrapper: Bootstrapper,
    plan: BootstrapPlan,
    key: SecretKey,
    keys: BootstrappingKeys,
}

impl Owner {
    fn of(bootstrapper: Bootstrapper) -> Self {
        let key = SecretKey::from_seed(bootstrapper.params(), &[31; 32]);
        let entropy = &mut Entropy::insecure_fixed(&[32; 32]);
        let keys = key.bootstrapping_keys_with(&bootstrapper, entropy).unwrap();
        Owner { plan: bootstrapper.plan().unwrap(), bootstrapper, key, keys }
    }

    fn new(spec: BootstrapSpec) -> Self {
        Self::of(Bootstrapper::insecure_new(spec).unwrap())
    }

    fn params(&self) -> &Arc<Params> {
        self.bootstrapper.params()
    }

    fn values(&self, count: usize, seed: u8) -> Vec<f64> {
        numbers(self.params(), count, seed).iter().map(|x| x.re).collect()
    }

    fn encrypt(&self, values: &[f64], level: usize) -> Ciphertext {
        let encoding = Encoding { level: Some(level), ..Encoding::default() };
        let plaintext = Plaintext::encode_with(self.params(), values, &encoding).unwrap();
        // The same in every run: of numbers refreshed twice few are off by more than 9.5 deviations.
        let entropy = &mut Entropy::insecure_fixed(&[34; 32]);
        self.key.encrypt_seeded_with(&plaintext, entropy).unwrap().expand()
    }

    fn spent(&self, values: &[f64]) -> Ciphertext {
        self.encrypt(values, self.plan.lowest_level)
    }

    fn refreshed(&self, spent: &Ciphertext) -> Ciphertext {
        self.bootstrapper.bootstrap(spent, &self.keys).unwrap()
    }

    fn decrypt(&self, ciphertext: &Ciphertext) -> Vec<f64> {
        self.key.decrypt(ciphertext).unwrap().decode()
    }

    /// The root mean square and the largest of the errors after `runs` refreshings.
    fn errors(&self, runs: u8) -> (f64, f64) {
        let (mut square, mut worst) = (0.0, 0.0f64);
        for run in 0..runs {
            let values = self.values(self.plan.slots, run);
            let fresh = self.refreshed(&self.spent(&values));
            let scale = self.params().scale(self.plan.level);
            assert_eq!((fresh.level(), fresh.scale()), (self.plan.level, scale));
            assert_eq!(fresh.slots(), self.plan.slots);
            let off = off(&self.decrypt(&fresh), &values);
            assert!(off.1 <= fresh.noise().bound / fresh.scale());
            square += off.0.powi(2) / f64::from(runs);
            worst = worst.max(off.1);
        }
        (square.sqrt(), worst)
    }
}

/// The root mean square of the differences, and the largest.
fn off(actual: &[f64], expected: &[f64]) -> (f64, f64) {
    let differences = || actual.iter().zip(expected).map(|(a, b)| (a - b).abs());
    let square = differences().map(|e| e * e).sum::<f64>() / actual.len() as f64;
    (square.sqrt(), differences().fold(0.0, f64::max))
}

#[test]
fn refreshed_numbers_are_as_precise_as_the_plan_says() {
    let sine = spec();
    let falling = BootstrapSpec { reduction_bits: 44, scale_bits: 37, ..sine };
    let straight = BootstrapSpec { straight: true, scale_bits: 38, digits: 7, ..falling };
    let doubled = BootstrapSpec { doublings: 2, ..sine };
    let few = BootstrapSpec { log_slots: 5, coefficients_to_slots: 2, ..falling };
    let twice = BootstrapSpec { scale_bits: 42, iterations: 2, residual_bits: 8, ..falling };
    for spec in [sine, falling, straight, doubled, few, twice] {
        let owner = Owner::new(spec);
        let plan = owner.plan;
        assert!(plan.failure_log2 < -128.9, "{plan:?}");
        assert_eq!((plan.reductions, plan.slots), (spec.iterations, 1 << spec.log_slots));
        let (std, worst) = owner.errors(if spec.log_slots == 5 { 16 } else { 3 });
        let measured = -std.log2();
        assert!((measured - plan.precision_bits).abs() < 0.3, "{measured} {plan:?} {spec:?}");
        assert!(-worst.log2() >= plan.bound_bits, "{worst} {plan:?}");
    }
}

/// A range of 9 in place of 31: every 9,000th coefficient is lost, and the constant one, which is wider,
/// every 150th time. Seeds are fixed, so that the number is.
#[test]
fn a_range_that_is_too_short_fails_as_often_as_derived() {
    let owner = Owner::new(BootstrapSpec { range: 9.0, doublings: 2, ..spec() });
    let entropy = &mut Entropy::insecure_fixed(&[33; 32]);
    let (mut lost, runs) = (0, 40);
    for run in 0..runs {
        let values = owner.values(1024, run);
        let encoding = Encoding { level: Some(owner.plan.lowest_level), ..Encoding::default() };
        let plaintext = Plaintext::encode_with(owner.params(), &values, &encoding).unwrap();
        let spent = owner.key.encrypt_seeded_with(&plaintext, entropy).unwrap().expand();
        let (actual, bound) =
            (owner.decrypt(&owner.refreshed(&spent)), (-owner.plan.bound_bits).exp2());
        lost += actual.iter().zip(&values).filter(|(a, b)| (*a - *b).abs() > bound).count();
    }
    let expected = owner.plan.failure_log2.exp2() * f64::from(runs);
    assert!(lost > 0, "none lost");
    assert!(lost as f64 <= expected + 5.0 * expected.sqrt(), "{lost} lost, {expected} expected");
}

#[test]
fn computing_goes_on_between_refreshings() {
    let few = BootstrapSpec { log_slots: 6, coefficients_to_slots: 2, ..spec() };
    for (spec, slots) in [(spec(), 1024), (spec(), 16), (few, 64), (few, 16)] {
        let owner = Owner::new(spec);
        let plan = KeyPlan::new().relinearise().at_level(owner.plan.level);
        let evaluator = Evaluator::new(Arc::new(owner.key.evaluation_keys(&plan).unwrap()));
        // x ↦ x² − 1/2 draws towards a fixed point, so that errors do not grow.
        let mut expected = owner.values(slots, 9);
        let mut x = owner.encrypt(&expected, owner.plan.level);
        for _ in 0..3 {
            for _ in 0..owner.plan.levels_left {
                let square = evaluator.mul(&x, &x).unwrap();
                x = evaluator.add_scalar(&square, -0.5).unwrap().with_magnitude(1.0).unwrap();
                expected.iter_mut().for_each(|x| *x = *x * *x - 0.5);
            }
            assert_eq!(x.level(), owner.plan.lowest_level);
            x = owner.refreshed(&x);
            assert_eq!((x.level(), x.slots()), (owner.plan.level, slots));
        }
        let (std, largest) = off(&owner.decrypt(&x), &expected);
        assert!(std.log2() < -owner.plan.precision_bits + 1.0, "2^{:.2}", std.log2());
        assert!(largest <= x.noise().bound / x.scale());
        // In all slots of the ring, again and again.
        let all = owner.decrypt(&x.with_slots(1024).unwrap());
        let repeated: Vec<f64> = expected.iter().copied().cycle().take(1024).collect();
        assert!(off(&all, &repeated).1 < f64::exp2(-14.0));
    }
}

#[test]
fn keys_come_back_as_they_went_in() {
    let owner = Owner::new(BootstrapSpec { levels: 1, ..spec() });
    let bytes = owner.keys.to_bytes();
    assert_eq!(bytes.len(), owner.plan.key_bytes);
    let read = BootstrappingKeys::from_bytes(owner.params(), &bytes).unwrap();
    assert_eq!(read.to_bytes(), bytes);
    let mut streamed = Vec::new();
    owner.keys.write_to(&mut streamed).unwrap();
    assert_eq!(streamed, bytes);
    let spent = owner.spent(&owner.values(1024, 3));
    let fresh = owner.bootstrapper.bootstrap(&spent, &read).unwrap();
    assert_eq!(fresh, owner.refreshed(&spent));
    // A key for each rotation and one to relinearise: real slots are not conjugated.
    let plans = owner.bootstrapper.key_plans().iter();
    let keys: usize = plans.map(|plan| plan.keys(owner.params())).sum();
    assert_eq!(keys, owner.plan.rotations + 1);
    // The ring is in the name of the set, so keys of one are not taken for keys of the other.
    let standard = BootstrapSpec { ring: Ring::Standard, log_slots: 9, levels: 1, ..spec() };
    let standard = Bootstrapper::insecure_new(standard).unwrap();
    assert_eq!(standard.params().stages(), owner.params().stages());
    let error = BootstrappingKeys::from_bytes(standard.params(), &bytes).unwrap_err();
    assert!(matches!(error, Error::Parameters { .. }), "{error}");
    let params = Params::from_bytes(&owner.params().to_bytes()).unwrap();
    assert_eq!((&params, params.ring()), (owner.params(), Ring::ConjugateInvariant));
    assert_eq!(owner.bootstrapper.spec().params().unwrap().ring, Ring::ConjugateInvariant);
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |spec: BootstrapSpec, what: &str| {
        let error = Bootstrapper::insecure_new(spec).unwrap_err();
        assert!(matches!(error, Error::Range { .. }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    refused(BootstrapSpec { log_slots: 11, ..spec() }, "3 to 10, got 11");
    refused(BootstrapSpec { log_slots: 2, ..spec() }, "3 to 10, got 2");
    refused(BootstrapSpec { ring: Ring::Standard, ..spec() }, "1 to 9, got 10");
    refused(BootstrapSpec { log_slots: 4, ..spec() }, "1 to 2, got 3");
    let bootstrapper = Bootstrapper::insecure_new(spec()).unwrap();
    let error = Exponential::beside(&bootstrapper).unwrap_err();
    assert!(error.to_string().contains("conjugate-invariant one, with real slots"), "{error}");
    let owner = Owner::of(bootstrapper);
    let low = owner.encrypt(&[0.5], 1);
    let error = owner.bootstrapper.bootstrap(&low, &owner.keys).unwrap_err();
    assert!(matches!(error, Error::Level { .. }), "{error}");
    let large = owner.spent(&[0.5]).with_magnitude(2.0).unwrap();
    let error = owner.bootstrapper.bootstrap(&large, &owner.keys).unwrap_err();
    assert!(matches!(error, Error::Range { .. }), "{error}");
    assert!(owner.key.evaluation_keys(&KeyPlan::new().conjugate()).is_err());
}

/// Each holds as many real numbers as its ring has coefficients, which one reduction refreshes.
#[test]
fn the_sets_to_be_used_hold_what_they_are_for() {
    for (spec, precision, levels) in [
        (BootstrapSpec::degree_32768_real_slots(), 15.0, 3),
        (BootstrapSpec::degree_65536_real_slots(), 20.0, 8),
    ] {
        let bootstrapper = Bootstrapper::new(spec).unwrap();
        let plan = bootstrapper.plan().unwrap();
        assert!(plan.precision_bits >= precision && plan.levels_left >= levels, "{plan:?}");
        assert!(plan.failure_log2 < -129.0, "{plan:?}");
        assert_eq!((plan.slots, plan.reductions), (1 << spec.log_degree, 1));
    }
}

/// `cargo test --release -p ciphervec-he --all-features -- --ignored --nocapture real_slots_are_as`
#[test]
#[ignore = "ten minutes of work and 5 GiB; the small sets hold the same code to the same formulas"]
fn real_slots_are_as_precise_as_their_plans_say() {
    for spec in [BootstrapSpec::degree_32768_real_slots(), BootstrapSpec::degree_65536_real_slots()]
    {
        let start = Instant::now();
        let owner = Owner::of(Bootstrapper::new(spec).unwrap());
        println!("{:?}\n{}", owner.plan, owner.params().explain());
        println!("all keys: {:.1} s, {} bytes", start.elapsed().as_secs_f64(), owner.keys.memory());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let start = Instant::now();
        let (std, worst) = pool.install(|| owner.errors(2));
        println!("{:.2} s each, encryption included", start.elapsed().as_secs_f64() / 2.0);
        println!("{:.2} bits, worst slot {:.2}", -std.log2(), -worst.log2());
        assert!((-std.log2() - owner.plan.precision_bits).abs() < 0.3);
        assert!(-worst.log2() >= owner.plan.bound_bits);
    }
}
