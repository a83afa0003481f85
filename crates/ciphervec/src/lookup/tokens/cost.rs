//! What a lookup costs: operations, bytes and an estimate of the time, from a recipe and a number
//! of tables. Public numbers only.
//!
//! Operations are counted by walking the strategies' own recurrences, level by level; a machine's
//! speed is measured once in a process, on the arithmetic that all of it consists of.

use super::basis::ive::Parts;
use super::basis::sink::ceil_log2;
use super::basis::{Basis, Kind, indicator};
use super::carrier::carrier;
use super::design::Design;
use super::recipe::Recipe;
use crate::error::Result;
use ciphervec_arith::pcmm::{self, Weights};
use ciphervec_arith::{NttTable, ntt_primes, poly};
use ciphervec_he::ckks::{ParamsSpec, Ring};
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Outputs and inputs of the matrix product that is measured, and its residues: as large as a
/// lookup's, in cache terms.
const SAMPLE: (usize, usize, usize) = (48, 128, 4096);
/// Times that a measurement is repeated; the fastest counts, as it was disturbed least.
const REPEATS: usize = 5;
/// Bits of the prime that is measured with.
const PRIME_BITS: u32 = 50;

/// Operations on residues.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Operations {
    /// Products of two ciphertexts.
    pub products: usize,
    /// Relinearisations.
    pub relinearisations: usize,
    /// Conjugations.
    pub conjugations: usize,
    /// Transforms of one polynomial modulo one prime.
    pub transforms: f64,
    /// Residues multiplied and added on the way, in polynomials modulo one prime.
    pub passes: f64,
    /// Weights times residues, in polynomials modulo one prime.
    pub weighted: f64,
}

impl Operations {
    /// As many times as much.
    pub fn repeated(self, factor: usize) -> Self {
        let real = factor as f64;
        Operations {
            products: self.products * factor,
            relinearisations: self.relinearisations * factor,
            conjugations: self.conjugations * factor,
            transforms: self.transforms * real,
            passes: self.passes * real,
            weighted: self.weighted * real,
        }
    }
}

impl core::ops::AddAssign for Operations {
    fn add_assign(&mut self, other: Self) {
        self.products += other.products;
        self.relinearisations += other.relinearisations;
        self.conjugations += other.conjugations;
        self.transforms += other.transforms;
        self.passes += other.passes;
        self.weighted += other.weighted;
    }
}

/// Counts operations under one parameter set.
pub(super) struct Counter<'a> {
    spec: &'a ParamsSpec,
    pub sum: Operations,
}

impl<'a> Counter<'a> {
    pub fn new(spec: &'a ParamsSpec) -> Self {
        Counter { spec, sum: Operations::default() }
    }

    /// A key switch at `level`, whose result is divided by P, and by the last prime too where it is
    /// rescaled.
    pub fn switch(&mut self, level: usize, rescale: bool) {
        let spec = self.spec;
        let (primes, special) = (level + 1, spec.special_primes);
        let digits = primes.div_ceil(spec.digit_primes());
        let kept = primes - usize::from(rescale);
        let extended = digits * (primes + special);
        // Into coefficients; digits to the other primes; both sums without the kept primes back,
        // and their remainders forth.
        self.sum.transforms += (primes + extended - primes) as f64;
        self.sum.transforms += 2.0 * (primes + special - kept + kept) as f64;
        // Conversions of digits and remainders, inner products with both halves of the key, the
        // end.
        let conversions = extended + 2 * kept * (special + usize::from(rescale));
        self.sum.passes += (conversions + 2 * extended + 4 * primes) as f64;
    }

    /// `a b`, relinearised and rescaled, from `level`.
    pub fn product(&mut self, level: usize) {
        self.sum.products += 1;
        self.sum.relinearisations += 1;
        self.sum.passes += (10 * (level + 1)) as f64;
        self.switch(level, true);
    }

    /// To a lower level at its canonical scale.
    fn settle(&mut self, from: usize, to: usize) {
        if from > to {
            self.sum.transforms += 2.0 * (to + 2) as f64;
            self.sum.passes += (8 * (to + 2)) as f64;
        }
    }

    /// Bilinear forms of the functions of two digits.
    fn form(&mut self, level: usize, [high, low]: [&Basis; 2], count: usize) {
        let limbs = (level + 1) * count;
        self.sum.weighted += (2 * limbs * (high.len() + 1) * low.len()) as f64;
        self.sum.products += high.len() * count;
        // What the matrix product adds for sums as short as these: its inputs laid out, its outputs
        // reduced and copied. Then the inner product.
        let matrix = 2 * limbs * (low.len() + 3 * (high.len() + 1));
        self.sum.passes += (matrix + 4 * limbs * (high.len() + 2)) as f64;
    }

    /// The end of a sum of products, with a key or without.
    fn finish(&mut self, level: usize, relinearise: bool) {
        if relinearise {
            self.sum.relinearisations += 1;
            self.switch(level, true);
        } else {
            self.sum.transforms += (3 * (level + 1)) as f64;
        }
    }

    /// The functions of a digit at `level`, from a number at `top`.
    fn basis(&mut self, basis: &Basis, top: usize, (level, parts): (usize, Parts)) {
        let after = |n: usize| top - ceil_log2(n);
        match basis.kind() {
            Kind::Given => (0..basis.entries()).for_each(|_| self.settle(top, level)),
            Kind::Chebyshev => {
                self.settle(top, level);
                for n in 2..basis.size() {
                    self.product(after(n) + 1);
                    self.settle(after(n), level);
                }
            }
            Kind::Powers => {
                for k in 1..=basis.size() / 2 {
                    if k > 1 {
                        self.product(after(k) + 1);
                    }
                    self.settle(after(k), level);
                    if parts == Parts::Deferred {
                        self.sum.passes += (4 * (level + 1)) as f64;
                        continue;
                    }
                    self.sum.conjugations += 1;
                    self.switch(level, false);
                    self.sum.passes += (8 * (level + 1)) as f64;
                }
            }
            Kind::Indicator => {
                let (squarings, cleanings) = indicator::steps(basis.size());
                let mut one = Counter::new(self.spec);
                for step in 0..1 + squarings + 2 * cleanings {
                    one.product(top - step);
                }
                self.sum += one.sum.repeated(basis.size());
            }
        }
    }
}

impl Design<'_> {
    /// What making the functions of one batch of indices takes, for one table, under such
    /// parameters.
    pub fn generation(&self, spec: &ParamsSpec) -> Operations {
        let mut counter = Counter::new(spec);
        let (design, top) = (self, self.top_level());
        let levels = design.levels();
        for (basis, level) in self.bases.iter().zip(&levels) {
            counter.basis(basis, top, (*level, self.parts()));
        }
        if let ([high, low], [level, _], false) = (self.bases, &levels[..], self.folded) {
            let mut one = Counter::new(spec);
            one.product(*level);
            counter.sum += one.sum.repeated(high.len() * low.len());
            let alone =
                usize::from(high.constant()) * low.len() + usize::from(low.constant()) * high.len();
            (0..alone).for_each(|_| counter.settle(*level, design.sum_level()));
        }
        counter.sum
    }

    /// What the sums with the weights of `tables` tables take for one batch.
    pub fn sums(&self, spec: &ParamsSpec, tables: usize) -> Operations {
        let (design, columns) = (self, self.shape.columns);
        let level = design.sum_level();
        let mut counter = Counter::new(spec);
        match (self.bases, design.levels().as_slice()) {
            ([high, low], [products, _]) if self.folded => {
                counter.form(*products, [high, low], columns * tables);
                (0..columns).for_each(|_| counter.finish(*products, design.relinearises()));
            }
            ([outer, high, low], [last, products, _]) => {
                let forms = (outer.len() + 1) * columns * tables;
                counter.form(*products, [high, low], forms);
                (0..forms).for_each(|_| counter.finish(*products, true));
                counter.sum.products += outer.len() * columns * tables;
                counter.sum.passes +=
                    (4 * (last + 1) * (outer.len() + 2) * columns * tables) as f64;
                (0..columns).for_each(|_| counter.finish(*last, true));
            }
            (bases, _) => {
                let functions: usize =
                    bases.iter().map(|basis| basis.len() + usize::from(basis.constant())).product();
                counter.sum.weighted = (2 * (level + 1) * functions * columns * tables) as f64;
            }
        }
        if self.parts() == Parts::Deferred {
            counter.sum.conjugations += columns;
            (0..columns).for_each(|_| counter.switch(level, false));
        }
        if self.shape.levels > 0 {
            (0..columns).for_each(|_| counter.settle(level, self.shape.levels));
        }
        counter.sum
    }
}

impl Recipe {
    /// What making the functions of one batch of indices takes, for one table.
    pub fn generation(&self) -> Operations {
        self.design().generation(self.params().spec())
    }

    /// What the sums with the weights of `tables` tables take for one batch.
    pub fn sums(&self, tables: usize) -> Operations {
        self.design().sums(self.params().spec(), tables)
    }

    /// Bytes of a batch's query, with seeds in place of masks.
    pub fn query_bytes(&self, tables: usize) -> usize {
        carrier(self).query_bytes(self, tables)
    }

    /// Bytes of the evaluation keys.
    ///
    /// # Errors
    /// None: the keys are those of the parameters' levels.
    pub fn key_bytes(&self) -> Result<usize> {
        carrier(self).key_bytes(self)
    }
}

/// How long this machine takes, for a ring.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Speed {
    /// Nanoseconds of a transform.
    pub transform: f64,
    /// Nanoseconds of a multiply-add of two polynomials modulo one prime.
    pub pass: f64,
    /// Nanoseconds of a polynomial modulo one prime times a weight.
    pub weighted: f64,
}

impl Speed {
    /// Measures on first use in a process, for every ring and degree; some milliseconds on one
    /// thread.
    ///
    /// # Errors
    /// None for a ring and a degree that parameters exist for.
    pub fn of(ring: Ring, degree: usize) -> Result<Self> {
        static KNOWN: OnceLock<Mutex<BTreeMap<(bool, usize), Speed>>> = OnceLock::new();
        let known = KNOWN.get_or_init(Mutex::default);
        let key = (ring == Ring::Standard, degree);
        if let Some(speed) = known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(*speed);
        }
        let speed = measure(ring, degree)?;
        known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, speed);
        Ok(speed)
    }

    /// Milliseconds that `operations` take.
    pub fn milliseconds(&self, operations: &Operations) -> f64 {
        let Operations { transforms, passes, weighted, .. } = operations;
        (transforms * self.transform + passes * self.pass + weighted * self.weighted) / 1e6
    }
}

/// The fastest of a few runs, in nanoseconds.
fn fastest(mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e9
    };
    (0..REPEATS).map(time).fold(f64::INFINITY, f64::min)
}

fn measure(ring: Ring, degree: usize) -> Result<Speed> {
    // 1 modulo four times the degree serves both rings.
    let prime = ntt_primes(PRIME_BITS, 2 * degree, 1)?.first().copied().unwrap_or(0);
    let table = match ring {
        Ring::Standard => NttTable::new(degree, prime)?,
        _ => NttTable::conjugate_invariant(degree, prime)?,
    };
    let modulus = *table.modulus();
    let residues = |seed: u64, count: usize| -> Vec<u64> {
        (0..count as u64)
            .map(|i| modulus.reduce((i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect()
    };
    // Several polynomials in turn, as ciphertexts are: more than the first cache holds.
    let mut polynomials: Vec<Vec<u64>> = (0..8).map(|seed| residues(seed, degree)).collect();
    let transform = fastest(|| {
        for limb in &mut polynomials {
            table.forward(limb);
            table.inverse(limb);
        }
    }) / 16.0;
    let (a, b) = (residues(3, degree), residues(4, degree));
    let pass = fastest(|| {
        polynomials.iter_mut().for_each(|limb| poly::mul_add_assign(limb, &a, &b, &modulus));
    }) / 8.0;
    let (rows, columns, length) = SAMPLE;
    let values: Vec<i64> = (0..rows * columns).map(|i| (i * 7919 % 4001) as i64 - 2000).collect();
    let weights = Weights::new(rows, columns, &values)?;
    let inputs: Vec<Vec<u64>> = (0..columns as u64).map(|seed| residues(seed, length)).collect();
    let inputs: Vec<&[u64]> = inputs.iter().map(Vec::as_slice).collect();
    let mut outputs = vec![vec![0; length]; rows];
    let product = fastest(|| {
        let mut outputs: Vec<&mut [u64]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        pcmm::multiply(&weights, &inputs, &mut outputs, &modulus);
    });
    let weighted = product / (rows * columns) as f64 * (degree as f64 / length as f64);
    Ok(Speed { transform, pass, weighted })
}
