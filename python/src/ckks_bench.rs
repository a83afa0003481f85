//! Times CKKS operation by operation, for benches. Plays owner and server; gives milliseconds and errors, never a key
//! or a ciphertext.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use ciphervec_he_secret::ckks::{
    Ciphertext, Complex, Encoding, Evaluator, KeyPlan, Params, ParamsSpec, PlainMatrix, Plaintext,
    PublicKey, Ring, SecretKey,
};
use ciphervec_he_secret::params::{Security, max_log_modulus};
use ciphervec_he_secret::{Error, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::Raise;
use crate::runtime;

/// Bits of the base prime and of the special primes, and of the primes of the other levels.
const BASE_BITS: u32 = 50;
const SCALE_BITS: u32 = 49;

/// Outputs and inputs of the plaintext matrix, and bits of its weights.
const MATRIX: usize = 64;
const WEIGHT_BITS: u32 = 18;

/// Milliseconds of every run, and the largest error of the last one's result.
type Measured = (Vec<f64>, f64);

/// One parameter set with its keys.
#[pyclass(name = "CkksBench", module = "ciphervec._native", frozen)]
pub struct PyCkksBench {
    params: Arc<Params>,
    key: SecretKey,
    public: PublicKey,
    evaluator: Evaluator,
}

#[pymethods]
impl PyCkksBench {
    /// `real` asks for the conjugate-invariant ring. Checked against the security table as every parameter set is.
    #[new]
    #[pyo3(signature = (log_degree, primes, special_primes, digits, *, real = false))]
    fn new(
        py: Python<'_>,
        log_degree: u32,
        primes: usize,
        special_primes: usize,
        digits: usize,
        real: bool,
    ) -> PyResult<Self> {
        let spec = ParamsSpec {
            log_degree,
            ring: if real { Ring::ConjugateInvariant } else { Ring::Standard },
            base_bits: BASE_BITS,
            scale_bits: SCALE_BITS,
            levels: primes.saturating_sub(1),
            special_primes,
            special_bits: BASE_BITS,
            digits,
            security: Security::Classical128,
        };
        py.detach(|| runtime::run(|| Self::generate(spec))).map_err(Raise::raise)
    }

    /// An upper bound on log2(QP) of such a set, and what the security table allows at the degree.
    #[staticmethod]
    fn bits(log_degree: u32, primes: u32, special_primes: u32) -> (u32, u32) {
        let degree = 1usize.checked_shl(log_degree).unwrap_or(0);
        let limit = max_log_modulus(degree, Security::Classical128).unwrap_or(0);
        let whole = BASE_BITS * (1 + special_primes) + SCALE_BITS * primes.saturating_sub(1);
        // Primes of the levels lie on both sides of the scale.
        (whole + 1, limit)
    }

    /// Rows, columns and bits of the plaintext matrix of `pcmm`.
    #[staticmethod]
    fn matrix() -> (usize, usize, u32) {
        (MATRIX, MATRIX, WEIGHT_BITS)
    }

    /// log2(QP), rounded up.
    #[getter]
    fn log_modulus(&self) -> u32 {
        self.params.log_key_modulus()
    }

    /// Bytes in memory of one evaluation key.
    #[getter]
    fn key_bytes(&self) -> usize {
        self.evaluator.keys().map_or(0, |keys| keys.memory() / keys.len().max(1))
    }

    /// `repeats` runs of `op` at `level`, after one that is dropped: milliseconds of each, and the largest absolute error
    /// in a slot of what came out. Numbers are at most 1 in magnitude.
    fn time(&self, py: Python<'_>, op: &str, level: usize, repeats: usize) -> PyResult<Measured> {
        py.detach(|| runtime::run(|| self.measure(op, level, repeats))).map_err(Raise::raise)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("secret keys can't be pickled"))
    }
}

impl PyCkksBench {
    fn generate(spec: ParamsSpec) -> Result<Self> {
        let params = Params::new(spec)?;
        let key = SecretKey::generate(&params)?;
        let public = key.public_key()?;
        let plan = KeyPlan::new().relinearise().rotations([1]);
        let plan = if spec.ring == Ring::Standard { plan.conjugate() } else { plan };
        let evaluator = Evaluator::new(Arc::new(key.evaluation_keys(&plan)?));
        Ok(PyCkksBench { params, key, public, evaluator })
    }

    fn measure(&self, op: &str, level: usize, repeats: usize) -> Result<Measured> {
        let (u, v) = (self.numbers(0), self.numbers(1));
        let product = || times(&u, &v);
        let evaluator = &self.evaluator;
        let plain = self.encode(&u, level)?;
        let factor = self.encode(&v, level)?;
        let (a, b) = (self.key.encrypt(&plain)?, self.public.encrypt(&factor)?);
        let ciphertexts = Timer { bench: self, repeats };
        match op {
            "ntt_forward" | "ntt_inverse" => Ok(self.transform(op == "ntt_forward", &a, repeats)),
            "encode" => {
                let (runs, made) = timed(repeats, || self.encode(&u, level))?;
                Ok((runs, distance(&made.decode_complex(), &u)))
            }
            "encrypt" => ciphertexts.time(&u, || self.key.encrypt(&plain)),
            "encrypt_public" => ciphertexts.time(&u, || self.public.encrypt(&plain)),
            "decrypt" => {
                let (runs, made) = timed(repeats, || Ok(self.key.decrypt(&a)?.decode_complex()))?;
                Ok((runs, distance(&made, &u)))
            }
            "add" => {
                let sum: Vec<Complex> = u.iter().zip(&v).map(|(u, v)| *u + *v).collect();
                ciphertexts.time(&sum, || evaluator.add(&a, &b))
            }
            "multiply" => ciphertexts.time(&product(), || evaluator.multiply(&a, &b)),
            "relinearize" => {
                let square = evaluator.multiply(&a, &b)?;
                ciphertexts.time(&product(), || evaluator.relinearise(&square))
            }
            "multiply_relinearize" => {
                ciphertexts.time(&product(), || evaluator.relinearise(&evaluator.multiply(&a, &b)?))
            }
            "rescale" => {
                let pending = evaluator.relinearise(&evaluator.multiply(&a, &b)?)?;
                ciphertexts.time(&product(), || evaluator.rescale(&pending))
            }
            "rotate" => ciphertexts.time(&turned(&u), || evaluator.rotate(&a, 1)),
            "rotate_hoisted" => {
                let digits = evaluator.decompose(&a)?;
                let rotate = || Ok(evaluator.rotate_hoisted(&digits, &[1])?.remove(0));
                ciphertexts.time(&turned(&u), rotate)
            }
            "conjugate" => {
                let conjugate: Vec<Complex> = u.iter().map(|u| u.conj()).collect();
                ciphertexts.time(&conjugate, || evaluator.conjugate(&a))
            }
            "multiply_plain" => {
                ciphertexts.time(&product(), || evaluator.multiply_plain(&a, &factor))
            }
            "pcmm" => self.matrix_product(level, repeats),
            other => Err(Error::Range {
                what: "an operation",
                expected: "one that benches know".into(),
                actual: other.into(),
            }),
        }
    }

    /// Numbers of magnitude at most 1 in every slot, other ones for each `series`.
    fn numbers(&self, series: usize) -> Vec<Complex> {
        let real = self.params.ring() == Ring::ConjugateInvariant;
        let number = |slot: usize| {
            let angle = (slot * (2 * series + 3)) as f64;
            let imaginary = if real { 0.0 } else { (1.7 * angle).cos() };
            Complex::new(angle.sin(), imaginary).scale(core::f64::consts::FRAC_1_SQRT_2)
        };
        (1..=self.params.max_slots()).map(number).collect()
    }

    fn encode(&self, values: &[Complex], level: usize) -> Result<Plaintext> {
        let encoding = Encoding { level: Some(level), ..Encoding::default() };
        Plaintext::encode_complex_with(&self.params, values, &encoding)
    }

    /// A transform modulo one prime, in place; the error is how many residues do not come back.
    fn transform(&self, forward: bool, a: &Ciphertext, repeats: usize) -> Measured {
        let table = self.params.table(a.level());
        let start = a.parts()[0].limb(a.level()).to_vec();
        let mut limb = start.clone();
        let mut runs = Vec::with_capacity(repeats);
        for run in 0..=repeats {
            let began = Instant::now();
            if forward {
                table.forward(&mut limb);
            } else {
                table.inverse(&mut limb);
            }
            let elapsed = 1e3 * began.elapsed().as_secs_f64();
            if run > 0 {
                runs.push(elapsed);
            }
        }
        for _ in 0..=repeats {
            if forward {
                table.inverse(&mut limb);
            } else {
                table.forward(&mut limb);
            }
        }
        (runs, limb.iter().zip(&start).filter(|(a, b)| a != b).count() as f64)
    }

    /// [`MATRIX`] weighted sums of as many ciphertexts.
    fn matrix_product(&self, level: usize, repeats: usize) -> Result<Measured> {
        let values: Vec<Vec<Complex>> = (0..MATRIX).map(|series| self.numbers(series)).collect();
        let encrypt = |values: &Vec<Complex>| self.key.encrypt(&self.encode(values, level)?);
        let inputs = values.iter().map(encrypt).collect::<Result<Vec<_>>>()?;
        // Multiples of 2^-17 below 1, the first of them the largest: the bits take them exactly.
        let unit = 1i64 << (WEIGHT_BITS - 1);
        let weight = |k: usize, i: usize| {
            let place = (k * MATRIX + i) as i64;
            (place * 1_000_003 % (2 * unit - 1) - (unit - 1)) as f64 / unit as f64
        };
        let weights: Vec<Vec<f64>> =
            (0..MATRIX).map(|k| (0..MATRIX).map(|i| weight(k, i)).collect()).collect();
        let matrix = PlainMatrix::new(&weights, WEIGHT_BITS - 1)?;
        let (runs, sums) = timed(repeats, || self.evaluator.matrix_product(&matrix, &inputs))?;
        let mut error = 0.0f64;
        for (sum, weights) in sums.iter().zip(&weights) {
            let mut expected = vec![Complex::default(); self.params.max_slots()];
            for (values, weight) in values.iter().zip(weights) {
                for (slot, value) in expected.iter_mut().zip(values) {
                    *slot += value.scale(*weight);
                }
            }
            error = error.max(distance(&self.key.decrypt(sum)?.decode_complex(), &expected));
        }
        Ok((runs, error))
    }
}

/// Times what makes ciphertexts, and decrypts the last.
struct Timer<'a> {
    bench: &'a PyCkksBench,
    repeats: usize,
}

impl Timer<'_> {
    fn time(
        &self,
        expected: &[Complex],
        run: impl FnMut() -> Result<Ciphertext>,
    ) -> Result<Measured> {
        let (runs, made) = timed(self.repeats, run)?;
        let found = self.bench.key.decrypt(&made)?.decode_complex();
        Ok((runs, distance(&found, expected)))
    }
}

/// Milliseconds of each of `repeats` runs after one that warms up, and what the last one gave. What a run gave is dropped
/// off the clock.
fn timed<T>(repeats: usize, mut run: impl FnMut() -> Result<T>) -> Result<(Vec<f64>, T)> {
    let mut last = run()?;
    let mut runs = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        let began = Instant::now();
        let made = black_box(run()?);
        runs.push(1e3 * began.elapsed().as_secs_f64());
        last = made;
    }
    Ok((runs, last))
}

fn times(u: &[Complex], v: &[Complex]) -> Vec<Complex> {
    u.iter().zip(v).map(|(u, v)| *u * *v).collect()
}

/// One slot to the left.
fn turned(u: &[Complex]) -> Vec<Complex> {
    let mut out = u.to_vec();
    out.rotate_left(1);
    out
}

/// The largest absolute difference.
fn distance(found: &[Complex], expected: &[Complex]) -> f64 {
    found.iter().zip(expected).map(|(a, b)| (*a - *b).norm()).fold(0.0, f64::max)
}
