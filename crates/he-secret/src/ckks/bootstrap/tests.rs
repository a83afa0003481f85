//! Every stage alone, against doubles.

use super::super::inner::transforms::{
    CompactTransform, Diagonals, Direction, matrices, real_matrices, routes,
};
use super::super::inner::{Meta, WEIGHT};
use super::super::{
    BootstrapSpec, Bootstrapper, Ciphertext, Complex, Encoding, Entropy, Evaluator, KeyPlan, Ntt,
    Params, ParamsSpec, Plaintext, Poly, Ring, SecretKey,
};
use super::{encapsulation, keys};
use crate::error::{Error, Result};
use crate::params::Security;
use std::sync::Arc;

fn params(ring: Ring) -> Result<Arc<Params>> {
    let spec = ParamsSpec {
        log_degree: 10,
        ring,
        base_bits: 50,
        scale_bits: 45,
        levels: 3,
        special_primes: 2,
        special_bits: 50,
        digits: 2,
        security: Security::Classical128,
    };
    Params::insecure_new(spec)
}

fn encrypted(key: &SecretKey, values: &[Complex], level: usize, scale: f64) -> Result<Ciphertext> {
    let encoding = Encoding { level: Some(level), scale: Some(scale), ..Encoding::default() };
    let plaintext = Plaintext::encode_complex_with(key.params(), values, &encoding)?;
    key.encrypt(&plaintext)
}

fn numbers(count: usize) -> Vec<Complex> {
    let part = |k: usize| ((k * 2_654_435_761) % 4096) as f64 / 2048.0 - 1.0;
    (0..count).map(|k| Complex::new(part(k), part(3 * k + 1)).scale(0.7)).collect()
}

/// The coefficients are those modulo q_0, and the multiples of it that a secret with 32
/// coefficients leaves, where the dense one would leave some 40.
#[test]
fn raised_coefficients_are_the_same_modulo_the_base_prime() {
    let params = params(Ring::Standard).unwrap();
    let key = SecretKey::generate(&params).unwrap();
    let mut entropy = Entropy::system();
    let keys = encapsulation::generate(&params, WEIGHT, key.values(), &mut entropy).unwrap();
    let scale = f64::exp2(38.0);
    let low = encrypted(&key, &numbers(512), 0, scale).unwrap();
    let before = key.decrypt(&low).unwrap().decode_coefficients();
    let parts: Vec<&Poly<Ntt>> = low.parts().iter().collect();
    let raised = keys.raise([parts[0], parts[1]]);
    let q = params.prime(0).value() as f64;
    let meta = Meta {
        key: low.key_id(),
        scale: low.scale(),
        slots: low.slots(),
        noise: *low.noise(),
        magnitude: 32.0 * q,
    };
    let high = Ciphertext::from_parts(raised, meta);
    assert_eq!(high.level(), 3);
    let after = key.decrypt(&high).unwrap().decode_coefficients();
    let (mut largest, mut error) = (0.0f64, 0.0f64);
    for (before, after) in before.iter().zip(&after) {
        let multiple = ((after - before) * scale / q).round();
        largest = largest.max(multiple.abs());
        error = error.max(((after - before) * scale - multiple * q).abs());
    }
    assert!((3.0..=16.0).contains(&largest), "multiples up to {largest}");
    assert!(error < f64::exp2(14.0), "2^{:.1}", error.log2());
}

/// Each product on encrypted slots is the one on doubles, whichever way its steps go, and in the end
/// slots are where they were.
#[test]
fn products_are_those_of_the_matrices() {
    type Matrices = fn(Direction, usize, usize) -> Vec<Diagonals>;
    let rings: [(Ring, Matrices); 2] =
        [(Ring::Standard, matrices), (Ring::ConjugateInvariant, real_matrices)];
    for ((ring, matrices), (low, high)) in
        rings.into_iter().flat_map(|ring| [(3, 3), (2, 4), (1, 1)].map(|counts| (ring, counts)))
    {
        let params = params(ring).unwrap();
        let (key, slots) = (SecretKey::generate(&params).unwrap(), params.max_slots());
        let forward = matrices(Direction::SlotsToCoefficients, slots, low);
        let back = matrices(Direction::CoefficientsToSlots, slots, high);
        let [there, again] = routes(&forward, &back, slots, 2);
        assert_eq!((there[0].from, again[high - 1].to), (0, 0));
        assert_eq!(there[low - 1].to, again[0].from);
        let all = forward.iter().zip(there).chain(back.iter().zip(again));
        for (matrix, route) in all.filter(|(matrix, _)| matrix.len() < slots) {
            let scale = params.prime(3).value() as f64;
            let transform = CompactTransform::new(&params, matrix, 3, scale, route).unwrap();
            let plan = KeyPlan::new().rotations(transform.rotations());
            let evaluator = Evaluator::new(Arc::new(key.evaluation_keys(&plan).unwrap()));
            let mut values = numbers(slots);
            if ring == Ring::ConjugateInvariant {
                values.iter_mut().for_each(|x| x.im = 0.0);
            }
            let x = encrypted(&key, &values, 3, params.scale(3)).unwrap();
            let y = transform.apply(&evaluator, &x).unwrap().with_magnitude(16.0).unwrap();
            let actual = key.decrypt(&y).unwrap().decode_complex();
            for (j, actual) in actual.iter().enumerate() {
                let row = (j + route.to) % slots;
                let from = row + slots - route.from;
                let terms = matrix.iter().map(|(k, d)| d[row] * values[(from + k) % slots]);
                let error = (actual - terms.sum::<Complex>()).norm();
                assert!(error < f64::exp2(-27.0), "{route:?}, slot {j}: 2^{:.1}", error.log2());
            }
        }
    }
}

/// What is missing is named, rotation by rotation, and only that.
#[test]
fn missing_keys_are_named() {
    let spec = BootstrapSpec {
        log_degree: 10,
        log_slots: 9,
        levels: 1,
        doublings: 2,
        digits: 2,
        special_primes: 8,
        ..BootstrapSpec::degree_32768()
    };
    let bootstrapper = Bootstrapper::insecure_new(spec).unwrap();
    let secret = SecretKey::generate(bootstrapper.params()).unwrap();
    let (top, scale) = (bootstrapper.params().max_level(), bootstrapper.params().scale(2));
    let spent = encrypted(&secret, &numbers(512), 2, scale).unwrap();
    let missing = |rotations: &[i64]| -> Vec<String> {
        let [low, middle, _] = bootstrapper.key_plans().clone();
        let high = KeyPlan::new().rotations(rotations.iter().copied()).at_level(top);
        let (plans, entropy) = ([low, middle, high], &mut Entropy::system());
        let keys = keys::generate(&secret, &plans, entropy, &mut || ());
        let error = bootstrapper.bootstrap(&spent, &keys.unwrap()).unwrap_err();
        let Error::MissingKey { key, .. } = &error else { panic!("{error}") };
        key.split(", ").map(str::to_owned).collect()
    };
    let all = missing(&[]);
    let [.., high] = bootstrapper.key_plans();
    assert_eq!(all.len(), high.keys(bootstrapper.params()), "{all:?}");
    assert!(all.contains(&format!("conjugation at level {top}")), "{all:?}");
    let steps = all[0].strip_prefix("rotation by ").and_then(|name| name.split(' ').next());
    let steps = steps.and_then(|steps| steps.parse().ok()).unwrap();
    assert_eq!(missing(&[steps]), all[1..]);
}
