//! Small insecure parameter sets, reproducible numbers and keys for the suites beside this file.

use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::ckks::{
    Ciphertext, Complex, Encoding, Evaluator, KeyPlan, Params, ParamsSpec, Plaintext, Ring,
    SecretKey,
};
use ciphervec_he_secret::params::Security;
use std::sync::Arc;

pub fn spec(ring: Ring, levels: usize, digits: usize) -> ParamsSpec {
    ParamsSpec {
        log_degree: 10,
        ring,
        base_bits: 50,
        scale_bits: 40,
        levels,
        special_primes: (levels + 1).div_ceil(digits),
        special_bits: 50,
        digits,
        security: Security::Classical128,
    }
}

/// A parameter set with a secret key.
pub struct Owner {
    pub params: Arc<Params>,
    pub key: SecretKey,
}

impl Owner {
    pub fn new(ring: Ring, levels: usize, digits: usize) -> Self {
        let params = Params::insecure_new(spec(ring, levels, digits)).unwrap();
        let key = SecretKey::generate(&params).unwrap();
        Owner { params, key }
    }

    pub fn evaluator(&self, plan: &KeyPlan) -> Evaluator {
        Evaluator::new(Arc::new(self.key.evaluation_keys(plan).unwrap()))
    }

    pub fn encrypt(&self, values: &[Complex], level: usize) -> Ciphertext {
        encrypt(&self.key, values, level)
    }

    /// Decrypts, compares with `expected`, and sees that the error is what the ciphertext says it
    /// is: the estimate of the standard deviation is exceeded by at most two bits, and the bound by
    /// nothing.
    pub fn check(&self, what: &str, ciphertext: &Ciphertext, expected: &[Complex]) {
        let actual = decrypt(&self.key, ciphertext);
        assert_eq!(actual.len(), expected.len(), "{what}: slots");
        let errors = || actual.iter().zip(expected).map(|(a, b)| *a - *b);
        let largest = errors().map(Complex::norm).fold(0.0, f64::max);
        let bound = ciphertext.noise().bound / ciphertext.scale();
        assert!(largest <= bound, "{what}: an error of {largest:e} is over the bound {bound:e}");
        let square = errors().map(|error| error.re * error.re).sum::<f64>() / expected.len() as f64;
        let measured = square.sqrt().log2();
        let estimated = ciphertext.error_bits();
        assert!(
            measured <= estimated + 2.0,
            "{what}: an error of 2^{measured:.2} where 2^{estimated:.2} was estimated"
        );
        if expected.len() >= 64 {
            assert!(
                measured >= estimated - 2.5,
                "{what}: an error of 2^{measured:.2} where 2^{estimated:.2} was estimated"
            );
        }
    }
}

pub fn encrypt(key: &SecretKey, values: &[Complex], level: usize) -> Ciphertext {
    let encoding = Encoding { level: Some(level), ..Encoding::default() };
    key.encrypt(&Plaintext::encode_complex_with(key.params(), values, &encoding).unwrap()).unwrap()
}

pub fn decrypt(key: &SecretKey, ciphertext: &Ciphertext) -> Vec<Complex> {
    key.decrypt(ciphertext).unwrap().decode_complex()
}

/// Numbers in [−1, 1], complex where the ring has complex slots.
pub fn numbers(params: &Params, count: usize, seed: u8) -> Vec<Complex> {
    let mut words = vec![0u64; 2 * count];
    Stream::new(&[seed; 32], 7).uniform_bits(53, &mut words);
    let real = params.ring() != Ring::Standard;
    let unit = |word: u64| word as f64 / f64::exp2(52.0) - 1.0;
    let pairs = words.as_chunks::<2>().0.iter();
    pairs
        .map(|&[re, im]| {
            if real {
                Complex::from(unit(re))
            } else {
                Complex::new(unit(re), unit(im)).scale(core::f64::consts::FRAC_1_SQRT_2)
            }
        })
        .collect()
}

pub fn zip(a: &[Complex], b: &[Complex], f: impl Fn(Complex, Complex) -> Complex) -> Vec<Complex> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

pub fn rotated(a: &[Complex], steps: i64) -> Vec<Complex> {
    let n = a.len() as i64;
    (0..n).map(|j| a[(j + steps).rem_euclid(n) as usize]).collect()
}

pub const RINGS: [Ring; 2] = [Ring::Standard, Ring::ConjugateInvariant];
