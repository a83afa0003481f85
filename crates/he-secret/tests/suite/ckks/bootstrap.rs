//! Bootstrapping at small insecure degrees: precision, failures, deep circuits, keys, refusals.

use super::support::{self, numbers};
use ciphervec_he_secret::Error;
use ciphervec_he_secret::ckks::{
    BootstrapSpec, Bootstrapper, BootstrappingKeys, Ciphertext, Complex, Encoding, Entropy,
    Evaluator, KeyPlan, Params, ParamsSpec, Plaintext, Ring, SecretKey,
};
use ciphervec_he_secret::params::Security;
use ciphervec_he_secret::wire::{self, Header, Kind, Scheme};
use std::sync::Arc;
use std::time::Instant;

/// The layout of the sets to be used, in a small ring.
fn spec(doublings: u32, inverse_sine: bool) -> BootstrapSpec {
    BootstrapSpec {
        ring: Ring::Standard,
        log_degree: 10,
        log_slots: 9,
        levels: 2,
        scale_bits: if inverse_sine { 45 } else { 40 },
        slots_to_coefficients: 2,
        slots_to_coefficients_bits: 42,
        reduction_bits: 49,
        reduction_top_bits: 49,
        reduction_rise: 1,
        doublings,
        straight: false,
        inverse_sine,
        coefficients_to_slots: 3,
        coefficients_to_slots_bits: 48,
        key_cost: 2,
        special_primes: 4,
        special_bits: 50,
        digits: 5,
        range: 16.0,
        iterations: 1,
        residual_bits: 0,
        security: Security::Classical128,
    }
}

struct Owner {
    bootstrapper: Bootstrapper,
    key: SecretKey,
    keys: BootstrappingKeys,
}

impl Owner {
    fn new(spec: BootstrapSpec) -> Self {
        let bootstrapper = Bootstrapper::insecure_new(spec).unwrap();
        let key = SecretKey::from_seed(bootstrapper.params(), &[35; 32]);
        let entropy = &mut Entropy::insecure_fixed(&[36; 32]);
        let keys = key.bootstrapping_keys_with(&bootstrapper, entropy).unwrap();
        Owner { bootstrapper, key, keys }
    }

    fn params(&self) -> &Arc<Params> {
        self.bootstrapper.params()
    }

    /// The same in every run: of numbers refreshed twice few are off by more than 9.5 deviations.
    fn encrypt(&self, values: &[Complex], level: usize) -> Ciphertext {
        let encoding = Encoding { level: Some(level), ..Encoding::default() };
        let plaintext = Plaintext::encode_complex_with(self.params(), values, &encoding).unwrap();
        let entropy = &mut Entropy::insecure_fixed(&[34; 32]);
        self.key.encrypt_seeded_with(&plaintext, entropy).unwrap().expand()
    }

    fn decrypt(&self, ciphertext: &Ciphertext) -> Vec<Complex> {
        support::decrypt(&self.key, ciphertext)
    }
}

/// The mean square of the real parts of the differences, and the largest absolute value.
fn errors(actual: &[Complex], expected: &[Complex]) -> (f64, f64) {
    let differences = || actual.iter().zip(expected).map(|(a, b)| a - b);
    let square = differences().map(|e| e.norm_sqr() / 2.0).sum::<f64>() / actual.len() as f64;
    (square.sqrt(), differences().map(Complex::norm).fold(0.0, f64::max))
}

#[test]
fn refreshed_numbers_are_as_precise_as_the_plan_says() {
    let sine = spec(0, false);
    let falling = BootstrapSpec { reduction_bits: 44, scale_bits: 37, ..sine };
    let straight = BootstrapSpec { straight: true, scale_bits: 39, ..falling };
    let few = BootstrapSpec { log_slots: 5, coefficients_to_slots: 2, ..falling };
    for spec in [sine, spec(2, false), spec(0, true), falling, straight, few] {
        let (measured, predicted) = measured(&Owner::new(spec), 8);
        assert!(measured >= predicted - 0.2, "{measured}");
        assert!(measured <= predicted + 2.5, "{measured}");
    }
}

/// The bits of precision over so many runs, within the bound, and those of the plan.
fn measured(owner: &Owner, runs: u8) -> (f64, f64) {
    let plan = owner.bootstrapper.plan().unwrap();
    assert!(plan.failure_log2 < -128.0, "{plan:?}");
    let (mut square, mut worst) = (0.0, 0.0f64);
    for run in 0..runs {
        let values = numbers(owner.params(), plan.slots, run);
        let spent = owner.encrypt(&values, plan.lowest_level);
        let fresh = owner.bootstrapper.bootstrap(&spent, &owner.keys).unwrap();
        assert_eq!(fresh.level(), plan.level);
        assert_eq!((fresh.scale(), fresh.slots()), (owner.params().scale(plan.level), plan.slots));
        let (std, largest) = errors(&owner.decrypt(&fresh), &values);
        assert!(largest <= fresh.noise().bound / fresh.scale());
        square += std * std / f64::from(runs);
        worst = worst.max(largest);
    }
    let measured = -square.sqrt().log2();
    let bits = -worst.log2();
    assert!(bits >= plan.bound_bits, "{bits:.2} in a slot, {measured:.2} bits measured, {plan:?}");
    (measured, plan.precision_bits)
}

/// The layout of the set that refreshes twice, in a small ring.
fn precise() -> BootstrapSpec {
    BootstrapSpec {
        log_degree: 10,
        log_slots: 9,
        levels: 2,
        slots_to_coefficients: 2,
        special_primes: 4,
        digits: 5,
        ..BootstrapSpec::degree_65536_precise()
    }
}

/// The same at scales so low that what is left is far above the error of encryption.
fn twice() -> BootstrapSpec {
    BootstrapSpec {
        slots_to_coefficients_bits: 30,
        reduction_bits: 36,
        reduction_top_bits: 42,
        coefficients_to_slots_bits: 40,
        scale_bits: 38,
        residual_bits: 9,
        ..precise()
    }
}

/// What one refreshing leaves is refreshed again: twice, three times, and with a polynomial that
/// leaves next to no curvature.
#[test]
fn iterations_are_as_precise_as_derived() {
    let straight = BootstrapSpec { straight: true, ..twice() };
    let thrice = BootstrapSpec { iterations: 3, residual_bits: 6, scale_bits: 42, ..straight };
    for spec in [precise(), twice(), straight, thrice] {
        let (measured, predicted) = measured(&Owner::new(spec), 8);
        assert!((measured - predicted).abs() < 0.3, "{measured:.2} and {predicted:.2}");
    }
    // What is left would come to more than 1.
    let far = BootstrapSpec { residual_bits: 12, ..twice() };
    let error = Bootstrapper::insecure_new(far).unwrap_err();
    assert!(error.to_string().contains("what a residual is multiplied by"), "{error}");
    // Slots that repeat, iterations without a factor and a factor without iterations.
    let few = BootstrapSpec { log_slots: 5, ..twice() };
    let none = BootstrapSpec { residual_bits: 0, ..twice() };
    let once = BootstrapSpec { iterations: 1, ..twice() };
    for spec in [few, none, once] {
        assert!(matches!(Bootstrapper::insecure_new(spec), Err(Error::Range { .. })), "{spec:?}");
    }
}

/// Twice the work with the same keys, and errors that do not grow in a loop.
#[test]
fn iterations_are_forecast_and_go_on() {
    let owner = Owner::new(twice());
    let spent = owner.encrypt(&numbers(owner.params(), 512, 1), 3);
    let fresh = owner.bootstrapper.bootstrap(&spent, &owner.keys).unwrap();
    assert_eq!(owner.bootstrapper.refreshed(&spent.expected()).unwrap(), fresh.expected());
    let plan = owner.bootstrapper.plan().unwrap();
    let total = owner.bootstrapper.work().unwrap().total();
    assert_eq!((plan.iterations, plan.reductions), (2, 4));
    assert_eq!(total.relinearisations, 4 * plan.relinearisations as u64);
    assert_eq!(total.rotations, 2 * plan.rotations as u64);
    computes(twice(), 64);
}

/// A range of 6 in place of 16: every 4,000th coefficient is lost. The others are not touched. Seeds
/// are fixed, so that the number is.
#[test]
fn a_range_that_is_too_short_fails_as_often_as_derived() {
    let weak = BootstrapSpec { range: 6.0, ..spec(2, false) };
    let bootstrapper = Bootstrapper::insecure_new(weak).unwrap();
    let key = SecretKey::from_seed(bootstrapper.params(), &[21; 32]);
    let mut entropy = Entropy::insecure_fixed(&[22; 32]);
    let keys = key.bootstrapping_keys_with(&bootstrapper, &mut entropy).unwrap();
    let owner = Owner { bootstrapper, key, keys };
    let plan = owner.bootstrapper.plan().unwrap();
    let (mut lost, runs) = (0, 100);
    for run in 0..runs {
        let values = numbers(owner.params(), plan.slots, run);
        let encoding = Encoding { level: Some(plan.lowest_level), ..Encoding::default() };
        let plaintext = Plaintext::encode_complex_with(owner.params(), &values, &encoding).unwrap();
        let spent = owner.key.encrypt_seeded_with(&plaintext, &mut entropy).unwrap().expand();
        let fresh = owner.bootstrapper.bootstrap(&spent, &owner.keys).unwrap();
        let (actual, bound) = (owner.decrypt(&fresh), (-plan.bound_bits).exp2());
        let pairs = actual.iter().zip(&values);
        let parts = pairs.flat_map(|(a, b)| [a.re - b.re, a.im - b.im]);
        lost += parts.filter(|error| error.abs() > bound).count();
    }
    let expected = plan.failure_log2.exp2() * f64::from(runs);
    assert!(lost > 0, "none lost");
    assert!(lost as f64 <= expected + 5.0 * expected.sqrt(), "{lost} lost, {expected} expected");
}

#[test]
fn the_sets_to_be_used_hold_what_they_are_for() {
    for (spec, precision, levels) in
        [(BootstrapSpec::degree_32768(), 15.0, 3), (BootstrapSpec::degree_65536(), 20.0, 8)]
    {
        let bootstrapper = Bootstrapper::new(spec).unwrap();
        let plan = bootstrapper.plan().unwrap();
        assert!(plan.precision_bits >= precision && plan.levels_left >= levels, "{plan:?}");
        assert!(plan.failure_log2 < -138.0, "{plan:?}");
    }
}

/// `cargo test --release -p ciphervec-he --all-features -- --ignored --nocapture as_precise_as_their`
#[test]
#[ignore = "ten minutes of work and 4 GiB; the small sets hold the same code to the same formulas"]
fn the_sets_to_be_used_are_as_precise_as_their_plans_say() {
    let few = BootstrapSpec::degree_32768_few_slots();
    for spec in [BootstrapSpec::degree_32768(), few, BootstrapSpec::degree_65536()] {
        // 2^20 slots in all where all are used.
        full_size(spec, (1usize << 20 >> (spec.log_degree - 1)) as u8);
    }
}

/// `cargo test --release -p ciphervec-he --all-features -- --ignored --nocapture precise_set`
#[test]
#[ignore = "two minutes of work and 4 GiB; the small sets hold the same code to the same formulas"]
fn the_precise_set_is_as_precise_as_its_plan_says() {
    full_size(BootstrapSpec::degree_65536_precise(), 2);
}

/// `cargo test --release -p ciphervec-he --all-features -- --ignored memory_while_refreshing`, alone: the
/// peak is the process's.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "a minute of work and 3 GiB"]
fn memory_while_refreshing_is_that_of_the_keys_and_a_gigabyte() {
    let bootstrapper = Bootstrapper::new(BootstrapSpec::degree_65536()).unwrap();
    let plan = bootstrapper.plan().unwrap();
    let key = SecretKey::generate(bootstrapper.params()).unwrap();
    let keys = key.bootstrapping_keys(&bootstrapper).unwrap();
    let owner = Owner { bootstrapper, key, keys };
    let spent = owner.encrypt(&numbers(owner.params(), plan.slots, 0), plan.lowest_level);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for _ in 0..4 {
        pool.install(|| owner.bootstrapper.bootstrap(&spent, &owner.keys)).unwrap();
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak = 1024 * peak.trim().trim_end_matches(" kB").parse::<usize>().unwrap();
    println!("{peak} bytes, of which keys {}", owner.keys.memory());
    assert!(peak <= owner.keys.memory() + 1_000_000_000);
}

/// One thread, timed; what is measured is printed and held to the plan.
fn full_size(spec: BootstrapSpec, runs: u8) {
    let start = Instant::now();
    let bootstrapper = Bootstrapper::new(spec).unwrap();
    let plan = bootstrapper.plan().unwrap();
    println!("{plan:?}\n{}", bootstrapper.params().explain());
    println!("tables and diagonals: {:.1} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let key = SecretKey::generate(bootstrapper.params()).unwrap();
    let keys = key.bootstrapping_keys(&bootstrapper).unwrap();
    println!("keys: {:.1} s, {} bytes in memory", start.elapsed().as_secs_f64(), keys.memory());
    let owner = Owner { bootstrapper, key, keys };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let (mut square, mut worst, mut least) = (0.0, 0.0f64, f64::INFINITY);
    for run in 0..runs {
        let values = numbers(owner.params(), plan.slots, run);
        let spent = owner.encrypt(&values, plan.lowest_level);
        let start = Instant::now();
        let fresh = pool.install(|| owner.bootstrapper.bootstrap(&spent, &owner.keys)).unwrap();
        least = least.min(start.elapsed().as_secs_f64());
        let (std, largest) = errors(&owner.decrypt(&fresh), &values);
        square += std * std / f64::from(runs);
        worst = worst.max(largest);
    }
    let measured = -square.sqrt().log2();
    println!("{least:.2} s; {measured:.2} bits, worst slot {:.2}", -worst.log2());
    assert!(measured >= plan.precision_bits - 0.2);
    assert!(-worst.log2() >= plan.bound_bits);
}

#[test]
fn computing_goes_on_between_refreshings() {
    computes(spec(2, true), 64);
}

/// Few slots come back repeated all over the ring, as they were, and in fewer than the set has too.
#[test]
fn few_slots_repeat_as_before() {
    let spec = BootstrapSpec { log_slots: 4, coefficients_to_slots: 2, ..spec(0, false) };
    computes(spec, 8);
    let owner = Owner::new(spec);
    let plan = owner.bootstrapper.plan().unwrap();
    assert_eq!((plan.slots, plan.reductions), (16, 1));
    let values = numbers(owner.params(), 16, 2);
    let spent = owner.encrypt(&values, plan.lowest_level);
    let fresh = owner.bootstrapper.bootstrap(&spent, &owner.keys).unwrap();
    let all = owner.decrypt(&fresh.with_slots(512).unwrap());
    let repeated: Vec<Complex> = values.iter().copied().cycle().take(512).collect();
    let (_, largest) = errors(&all, &repeated);
    assert!(largest < f64::exp2(-15.0), "2^{:.1}", largest.log2());
    let many = owner.encrypt(&numbers(owner.params(), 32, 2), plan.lowest_level);
    let error = owner.bootstrapper.bootstrap(&many, &owner.keys).unwrap_err();
    assert!(matches!(error, Error::Range { .. }), "{error}");
    // The same parameters with other keys.
    let fewer = BootstrapSpec { log_slots: 3, ..spec };
    let fewer = Bootstrapper::insecure_new(fewer).unwrap();
    assert_eq!(fewer.params(), owner.params());
    owner.bootstrapper.check_keys(&owner.keys).unwrap();
    let error = fewer.check_keys(&owner.keys).unwrap_err();
    assert!(
        matches!(&error, Error::MissingKey { key, .. } if key.contains("rotation by")),
        "{error}"
    );
    // Less work: one reduction, and fewer rotations.
    let few = BootstrapSpec::degree_32768_few_slots();
    let sets = [BootstrapSpec::degree_32768(), few, BootstrapSpec { log_slots: 3, ..few }];
    let plans = sets.map(|spec| Bootstrapper::new(spec).unwrap().plan().unwrap());
    assert!(plans[2].rotations < plans[1].rotations && plans[2].levels_left == 3);
    assert!(plans[2].precision_bits > plans[1].precision_bits + 1.5);
    println!("{plans:?}");
    assert!(plans[1].rotations < plans[0].rotations && plans[1].key_bytes < plans[0].key_bytes);
    assert!(plans[1].failure_log2 < plans[0].failure_log2 - 4.0);
    assert!(plans[1].precision_bits > 15.0 && plans[1].levels_left == 3);
}

/// Keys of a seed are the same bytes for good.
#[test]
fn keys_and_ciphertexts_of_a_seed_stay_what_they_are() {
    let bootstrapper = Bootstrapper::insecure_new(spec(2, false)).unwrap();
    let key = SecretKey::from_seed(bootstrapper.params(), &[41; 32]);
    let mut entropy = Entropy::insecure_fixed(&[42; 32]);
    let keys = key.bootstrapping_keys_with(&bootstrapper, &mut entropy).unwrap();
    let plaintext = Plaintext::encode(bootstrapper.params(), &[0.5; 512]).unwrap();
    let ciphertext = key.encrypt_seeded_with(&plaintext, &mut entropy).unwrap();
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex()[..16].to_string();
    let hashes = [hash(&keys.to_bytes()), hash(&ciphertext.to_bytes())];
    assert_eq!(hashes, ["9f10c483fe928662", "d0f05fe377e6fa77"]);
}

/// Narrow primes lie far apart: scales that are not followed exactly would not meet here.
#[test]
fn narrow_primes_do_as_well() {
    let narrow = BootstrapSpec { reduction_bits: 40, reduction_top_bits: 40, ..spec(0, false) };
    computes(BootstrapSpec { scale_bits: 33, ..narrow }, 64);
}

fn computes(spec: BootstrapSpec, slots: usize) {
    let owner = Owner::new(spec);
    let plan = owner.bootstrapper.plan().unwrap();
    let keys = owner.key.evaluation_keys(&KeyPlan::new().relinearise().at_level(plan.level));
    let evaluator = Evaluator::new(Arc::new(keys.unwrap()));
    // x ↦ x² − 1/2 draws towards a fixed point, so that errors do not grow.
    let mut expected: Vec<Complex> =
        numbers(owner.params(), slots, 9).iter().map(|x| Complex::from(x.re)).collect();
    let mut x = owner.encrypt(&expected, plan.level);
    for _ in 0..6 {
        for _ in 0..plan.levels_left {
            let square = evaluator.mul(&x, &x).unwrap();
            x = evaluator.add_scalar(&square, -0.5).unwrap().with_magnitude(1.0).unwrap();
            expected.iter_mut().for_each(|x| *x = *x * *x - 0.5);
        }
        assert_eq!(x.level(), plan.lowest_level);
        x = owner.bootstrapper.bootstrap(&x, &owner.keys).unwrap();
        assert_eq!((x.level(), x.slots()), (plan.level, slots));
    }
    let (std, largest) = errors(&owner.decrypt(&x), &expected);
    assert!(std.log2() < -plan.precision_bits + 2.0, "2^{:.2}", std.log2());
    assert!(largest <= x.noise().bound / x.scale());
}

#[test]
fn keys_come_back_as_they_went_in() {
    let owner = Owner::new(spec(2, false));
    let plan = owner.bootstrapper.plan().unwrap();
    let bytes = owner.keys.to_bytes();
    assert_eq!(bytes.len(), plan.key_bytes);
    let read = BootstrappingKeys::from_bytes(owner.params(), &bytes).unwrap();
    assert_eq!((read.key_id(), read.memory()), (owner.key.key_id(), owner.keys.memory()));
    assert_eq!(read.to_bytes(), bytes);
    let values = numbers(owner.params(), plan.slots, 3);
    let spent = owner.encrypt(&values, plan.lowest_level);
    let fresh = owner.bootstrapper.bootstrap(&spent, &read).unwrap();
    assert_eq!(fresh, owner.bootstrapper.bootstrap(&spent, &owner.keys).unwrap());
    // What is wrong within a frame whose checksum is right: refused, or other keys.
    let header = Header {
        scheme: Scheme::Ckks,
        kind: Kind::BootstrappingKeys,
        params: owner.params().param_id(),
        key: owner.key.key_id(),
    };
    let mut refused = 0;
    for place in (wire::HEADER_LEN..bytes.len()).step_by(bytes.len() / 23) {
        let mut damaged = bytes.clone();
        damaged[place..][..8].fill(0xff);
        header.seal(&mut damaged);
        refused += usize::from(BootstrappingKeys::from_bytes(owner.params(), &damaged).is_err());
        let mut short = bytes[..place].to_vec();
        header.seal(&mut short);
        assert!(BootstrappingKeys::from_bytes(owner.params(), &short).is_err());
    }
    assert!(refused >= 20, "{refused}");
    for length in (0..bytes.len()).step_by(bytes.len() / 23) {
        assert!(BootstrappingKeys::from_bytes(owner.params(), &bytes[..length]).is_err());
        let mut damaged = bytes.clone();
        damaged[length] ^= 1;
        assert!(BootstrappingKeys::from_bytes(owner.params(), &damaged).is_err());
    }
    let other = Bootstrapper::insecure_new(spec(1, false)).unwrap();
    assert_eq!(other.params(), owner.params(), "double angles alone are no other set");
    let other = Bootstrapper::insecure_new(BootstrapSpec { levels: 1, ..spec(2, false) }).unwrap();
    let error = BootstrappingKeys::from_bytes(other.params(), &bytes).unwrap_err();
    assert!(matches!(error, Error::Parameters { .. }), "{error}");
    // And the set itself, with its stages.
    let described = owner.params().to_bytes();
    let params = Params::from_bytes(&described).unwrap();
    assert_eq!((&params, params.stages()), (owner.params(), owner.params().stages()));
    assert!(ParamsSpec::described(&described).is_err());
}

#[test]
fn what_cannot_be_refreshed_is_refused() {
    let owner = Owner::new(spec(2, false));
    let (bootstrapper, plan) = (&owner.bootstrapper, owner.bootstrapper.plan().unwrap());
    let values = numbers(owner.params(), plan.slots, 4);
    let refused = |ciphertext: &Ciphertext, keys: &BootstrappingKeys| {
        bootstrapper.bootstrap(ciphertext, keys).unwrap_err()
    };
    let low = owner.encrypt(&values, plan.lowest_level - 1);
    assert!(matches!(refused(&low, &owner.keys), Error::Level { .. }));
    let spent = owner.encrypt(&values, plan.lowest_level);
    let large = spent.clone().with_magnitude(1.5).unwrap();
    assert!(matches!(refused(&large, &owner.keys), Error::Range { .. }));
    let stranger = SecretKey::generate(owner.params()).unwrap();
    let keys = stranger.bootstrapping_keys(bootstrapper).unwrap();
    assert!(matches!(refused(&spent, &keys), Error::WrongKey { .. }));
    let wide = BootstrapSpec { levels: 9, special_primes: 8, ..BootstrapSpec::degree_32768() };
    assert!(matches!(Bootstrapper::new(wide), Err(Error::Insecure { .. })));
    let none = BootstrapSpec { levels: 0, ..spec(2, false) };
    assert!(matches!(Bootstrapper::insecure_new(none), Err(Error::Range { .. })));
}

/// A forecast is what a run has, to the last bit; and the work of a set is that of its transforms and
/// reductions.
#[test]
fn what_is_forecast_of_a_refreshed_ciphertext_is_what_it_has() {
    let owner = Owner::new(spec(0, false));
    let values = numbers(owner.params(), 512, 1);
    let spent = owner.encrypt(&values, 3);
    let fresh = owner.bootstrapper.bootstrap(&spent, &owner.keys).unwrap();
    assert_eq!(owner.bootstrapper.refreshed(&spent.expected()).unwrap(), fresh.expected());
    let plan = owner.bootstrapper.plan().unwrap();
    let total = owner.bootstrapper.work().unwrap().total();
    assert_eq!(total.relinearisations, 2 * plan.relinearisations as u64);
    assert_eq!(total.rotations, plan.rotations as u64);
    let asked = owner.bootstrapper.spec().params().unwrap();
    assert_eq!(&asked, owner.params().spec());
}
