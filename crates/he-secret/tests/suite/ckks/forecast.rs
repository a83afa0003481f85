//! Forecasts against ciphertexts: what is known of every result is the same to the last bit, and so
//! is every refusal.

use super::support::{Owner, RINGS, numbers, spec};
use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::Result;
use ciphervec_he_secret::ckks::{
    Calibration, Ciphertext, Encoding, EncryptionKey, Evaluator, Expected, Forecast, Inverse,
    InverseSquareRoot, KeyPlan, Params, ParamsSpec, Plaintext, Polynomial, Ring, Sign,
};
use ciphervec_he_secret::params::Security;

/// A ciphertext and what is forecast of it.
type Both = (Ciphertext, Expected);

/// Words of a stream, one at a time.
struct Dice {
    words: Vec<u64>,
}

impl Dice {
    fn new(seed: u8) -> Self {
        let mut words = vec![0; 1 << 14];
        Stream::new(&[seed; 32], 3).uniform_bits(53, &mut words);
        Dice { words }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.words.pop().unwrap() as usize % limit
    }

    fn unit(&mut self) -> f64 {
        self.words.pop().unwrap() as f64 / f64::exp2(53.0)
    }
}

/// Both succeed with the same knowledge, or fail with the same words.
fn agree(what: &str, actual: Result<Ciphertext>, forecast: Result<Expected>) -> Option<Both> {
    match (actual, forecast) {
        (Ok(actual), Ok(forecast)) => {
            assert_eq!(actual.expected(), forecast, "{what}");
            Some((actual, forecast))
        }
        (Err(actual), Err(forecast)) => {
            assert_eq!(actual.to_string(), forecast.to_string(), "{what}");
            None
        }
        (actual, forecast) => {
            panic!("{what}: {:?} and {forecast:?}", actual.map(|a| a.expected()))
        }
    }
}

fn step(
    evaluator: &Evaluator,
    forecast: &Forecast,
    dice: &mut Dice,
    pool: &[Both],
) -> Option<Both> {
    let (a, known_a) = &pool[dice.below(pool.len())];
    let (b, known_b) = &pool[dice.below(pool.len())];
    let (e, f) = (evaluator, forecast);
    let number = 4.0 * dice.unit() - 2.0;
    let values: Vec<f64> = (0..a.slots()).map(|k| number * (k % 5) as f64).collect();
    let largest = values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let level = dice.below(a.level() + 2);
    let kind = dice.below(27);
    let what = format!("operation {kind} on {known_a:?} and {known_b:?}");
    let (actual, expected) = match kind {
        0 => (e.add(a, b), f.add(known_a, known_b)),
        1 => (e.sub(a, b), f.sub(known_a, known_b)),
        2 => (Ok(e.negate(a)), Ok(f.negate(known_a))),
        3 => (e.add_scalar(a, number), f.add_scalar(known_a, number)),
        4 => (e.multiply_scalar(a, number), f.multiply_scalar(known_a, number)),
        5 => (e.mul_scalar(a, number), f.mul_scalar(known_a, number)),
        6 => {
            let factor = dice.below(9) as i64 - 4;
            (e.multiply_integer(a, factor), f.multiply_integer(known_a, factor))
        }
        7 => (e.add_values(a, &values), f.add_values(known_a, largest)),
        8 => (e.multiply_values(a, &values), f.multiply_values(known_a, largest)),
        9 => (e.mul_values(a, &values), f.mul_values(known_a, largest)),
        10 => (e.multiply(a, b), f.multiply(known_a, known_b)),
        11 => (e.square(a), f.square(known_a)),
        12 | 13 => (e.mul(a, b), f.mul(known_a, known_b)),
        14 => {
            let (left, right) = ([a.clone(), a.clone()], [b.clone(), b.clone()]);
            let known = ([*known_a, *known_a], [*known_b, *known_b]);
            (e.inner_product(&left, &right, 3.0), f.inner_product(&known.0, &known.1, 3.0))
        }
        15 => (e.relinearise(a), f.relinearise(known_a)),
        16 => (e.normalise(a), f.normalise(known_a)),
        17 => (e.rescale(a), f.rescale(known_a)),
        18 => {
            let steps = [0, 1, 2, 4][dice.below(4)];
            (e.rotate(a, steps), f.rotate(known_a, steps))
        }
        19 if a.params().ring() == Ring::Standard => (e.conjugate(a), f.conjugate(known_a)),
        19 | 20 => {
            let count = [1, 4, 8, 3][dice.below(4)];
            (e.inner_sum(a, count), f.inner_sum(known_a, count))
        }
        21 => {
            let degree = 1 + dice.below(9);
            let c: Vec<f64> = (0..=degree).map(|k| number / (k + 1) as f64).collect();
            let polynomial = match dice.below(3) {
                0 => Polynomial::power(&c).unwrap(),
                1 => Polynomial::chebyshev(-1.0, 1.0, &c).unwrap(),
                _ => Polynomial::chebyshev(-3.0, 1.5, &c).unwrap(),
            };
            (e.polynomial(a, &polynomial), f.polynomial(known_a, &polynomial))
        }
        24 => (e.add_to(a.clone(), b), f.add_to(*known_a, known_b)),
        25 => (e.double_product(a, b, None), f.double_product(known_a, known_b, None)),
        26 => {
            let (c, known_c) = &pool[dice.below(pool.len())];
            let actual = e.double_product(a, b, Some(c));
            (actual, f.double_product(known_a, known_b, Some(known_c)))
        }
        22 => (e.drop_to(a, level), f.drop_to(known_a, level)),
        _ => (e.match_level(a, level), f.match_level(known_a, level)),
    };
    agree(&what, actual, expected)
}

#[test]
fn random_sequences_are_forecast_to_the_last_bit() {
    for (seed, (ring, digits)) in (1u8..).zip([(RINGS[0], 3), (RINGS[1], 2), (RINGS[0], 7)]) {
        let owner = Owner::new(ring, 6, digits);
        let public = owner.key.public_key().unwrap();
        let mut plan = KeyPlan::new().relinearise().rotations([1, 2, 4]);
        if ring == Ring::Standard {
            plan = plan.conjugate();
        }
        let evaluator = owner.evaluator(&plan);
        let forecast = Forecast::new(&owner.params);
        let mut dice = Dice::new(seed);
        let mut pool: Vec<Both> = Vec::new();
        let (mut kept, mut refused) = (0, 0);
        for round in 0..500 {
            if pool.len() < 6 || round % 5 == 0 {
                let encoding = Encoding {
                    level: Some(dice.below(7)),
                    slots: Some(8 << dice.below(4)),
                    magnitude: Some(1.0 + dice.unit()),
                    scale: None,
                };
                let values = numbers(&owner.params, 8, seed);
                let plaintext =
                    Plaintext::encode_complex_with(&owner.params, &values, &encoding).unwrap();
                let (actual, key) = if round % 2 == 0 {
                    (owner.key.encrypt(&plaintext), EncryptionKey::Secret)
                } else {
                    (public.encrypt(&plaintext), EncryptionKey::Public)
                };
                let fresh = agree("a fresh one", actual, forecast.fresh(key, &encoding)).unwrap();
                pool.push(fresh);
            }
            match step(&evaluator, &forecast, &mut dice, &pool) {
                Some(both) => {
                    pool.push(both);
                    kept += 1;
                }
                None => refused += 1,
            }
            if pool.len() > 12 {
                pool.remove(dice.below(pool.len()));
            }
        }
        // Neither is rare: both were compared.
        assert!(kept > 200 && refused > 20, "{kept} results, {refused} refusals");
    }
}

#[test]
fn functions_are_forecast_with_what_they_take() {
    for ring in RINGS {
        let sign = Sign::with_noise(0.25, 8.0, f64::exp2(-10.0)).unwrap();
        let owner = Owner::new(ring, sign.depth(), 3);
        let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
        let forecast = Forecast::new(&owner.params);
        let level = sign.depth();
        let a = owner.encrypt(&numbers(&owner.params, owner.params.max_slots(), 1), level);
        let known = forecast.fresh(EncryptionKey::Secret, &Encoding::default()).unwrap();
        assert_eq!(a.expected(), known);
        assert_eq!(a.error_bits(), forecast.error_bits(&known));
        agree("a sign", evaluator.sign(&a, &sign), forecast.sign(&known, &sign)).unwrap();
        let work = forecast.take_work().total();
        assert_eq!(work.relinearisations, sign.relinearisations() as u64);
        assert_eq!((work.rotations, forecast.work().levels().len()), (0, 0));
        for bits in [3, 9] {
            let inverse = Inverse::new(0.25, 1.0, bits).unwrap();
            let (actual, expected) =
                (evaluator.inverse(&a, &inverse), forecast.inverse(&known, &inverse));
            agree("an inverse", actual, expected);
            let root = InverseSquareRoot::new(0.25, 1.0, bits).unwrap();
            let actual = evaluator.inverse_square_root(&a, &root);
            agree("a root", actual, forecast.inverse_square_root(&known, &root));
        }
        let steps = [0, 1, 5];
        let rotations = owner.evaluator(&KeyPlan::new().rotations(steps));
        let turned = rotations.rotate_hoisted(&rotations.decompose(&a).unwrap(), &steps).unwrap();
        let expected = forecast.rotate_hoisted(&known, &steps).unwrap();
        for (turned, expected) in turned.into_iter().zip(expected) {
            agree("a hoisted rotation", Ok(turned), Ok(expected));
        }
        let fine = Sign::with_noise(0.25, 8.0, f64::exp2(-34.0)).unwrap();
        agree("a noisy sign", evaluator.sign(&a, &fine), forecast.sign(&known, &fine));
        let wide = known.with_magnitude(1.5).unwrap();
        let a = a.with_magnitude(1.5).unwrap();
        agree("a wide sign", evaluator.sign(&a, &sign), forecast.sign(&wide, &sign));
    }
    for degree in 1..=33 {
        let forecast = Forecast::new(&Params::insecure_new(spec(Ring::Standard, 7, 3)).unwrap());
        let known = forecast.fresh(EncryptionKey::Public, &Encoding::default()).unwrap();
        let c: Vec<f64> = (0..=degree).map(|k| 1.0 / (k + 1) as f64).collect();
        let polynomial = Polynomial::chebyshev(-1.0, 1.0, &c).unwrap();
        forecast.polynomial(&known, &polynomial).unwrap();
        let total = forecast.work().total();
        assert_eq!(total.relinearisations, polynomial.relinearisations() as u64, "{degree}");
    }
}

/// The example of section 4.3 of `docs/ckks.md`: 12 primes, 4 special ones, three digits.
#[test]
fn work_is_counted_as_documented() {
    let params = Params::insecure_new(spec(Ring::Standard, 11, 3)).unwrap();
    let forecast = Forecast::new(&params);
    let a = forecast.fresh(EncryptionKey::Secret, &Encoding::default()).unwrap();
    forecast.rotate(&a, 1).unwrap();
    let work = forecast.take_work();
    assert_eq!((work.total().transforms, work.total().rotations), (80, 1));
    assert_eq!(work.levels().len(), 12);
    // Of several rotations of one ciphertext 48 transforms are shared; one by nothing takes none.
    forecast.rotate_hoisted(&a, &[1, 2, 0, 5]).unwrap();
    let total = forecast.take_work().total();
    assert_eq!((total.transforms, total.rotations), (48 + 3 * 32, 3));
    // A product with its rescale takes as many transforms as one without.
    forecast.mul(&a, &a).unwrap();
    assert_eq!(forecast.take_work().total().transforms, 80);
    forecast.rescale(&forecast.square(&a).unwrap()).unwrap();
    assert_eq!(forecast.work().total().transforms, 36);
    let [calibration, slower] = [2.0, 4.0].map(|transform_ms| Calibration {
        log_degree: 10,
        transform_ms,
        product_ms: 0.0,
    });
    assert_eq!(forecast.milliseconds(&calibration), 72.0);
    assert_eq!(forecast.milliseconds(&slower), 144.0);
    let measured = Calibration::measure(12).unwrap();
    assert!(measured.transform_ms > 0.0 && measured.product_ms > 0.0);
    assert!(Calibration::measure(30).is_err());
}

#[test]
fn forecasts_of_a_spec_are_those_of_its_parameters() {
    let spec = ParamsSpec {
        log_degree: 13,
        ring: Ring::ConjugateInvariant,
        base_bits: 45,
        scale_bits: 35,
        levels: 3,
        special_primes: 1,
        special_bits: 45,
        digits: 4,
        security: Security::Classical128,
    };
    let (params, forecast) = (Params::new(spec).unwrap(), Forecast::of_spec(&spec).unwrap());
    assert_eq!(forecast.log_key_modulus(), params.log_key_modulus());
    assert_eq!((forecast.max_level(), forecast.max_slots()), (3, params.max_slots()));
    for level in 0..=3 {
        assert_eq!(forecast.scale(level), params.scale(level));
    }
    let same = Forecast::new(&params);
    let run = |f: &Forecast| {
        let a = f.fresh(EncryptionKey::Public, &Encoding::default()).unwrap();
        f.inner_sum(&f.mul(&a, &a).unwrap(), 16).unwrap()
    };
    assert_eq!(run(&forecast), run(&same));
    assert_eq!(forecast.work(), same.work());
    // No keys to switch with; and no security, refused before any prime is looked for.
    let bare = ParamsSpec { special_primes: 0, ..spec };
    let bare = Forecast::of_spec(&bare).unwrap();
    let a = bare.fresh(EncryptionKey::Secret, &Encoding::default()).unwrap();
    assert!(bare.rotate(&a, 1).unwrap_err().to_string().contains("special"));
    assert!(bare.mul(&a, &a).is_err());
    assert!(Forecast::of_spec(&ParamsSpec { levels: 12, digits: 13, ..spec }).is_err());
    let beyond = Encoding { level: Some(4), ..Encoding::default() };
    assert!(bare.fresh(EncryptionKey::Secret, &beyond).is_err());
}
