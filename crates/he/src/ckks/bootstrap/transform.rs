//! Compact transform: a ciphertext enters, its slots times a plain matrix leave. Server only.
//!
//! A product as [`super::super::LinearTransform`] has it, of a matrix whose diagonals are kept as
//! integers, one word a coefficient: at 30 primes the residues of one diagonal would take 30. They
//! are lifted to a prime and transformed when the product there is due.

use super::super::ciphertext::Ciphertext;
use super::super::evaluate::Evaluator;
use super::super::linear;
use super::super::params::{Params, Slots};
use super::super::poly::{Poly, each_pair};
use super::dft::Diagonals;
use crate::error::Result;
use ciphervec_arith::{convert, poly};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A matrix over all slots, for ciphertexts of one level.
pub(super) struct CompactTransform {
    level: usize,
    /// What the diagonals were multiplied by before they were rounded.
    scale: f64,
    /// The mean square of a row's Euclidean norm.
    square: f64,
    count: usize,
    /// The largest integer.
    largest: u64,
    /// For each giant step its baby steps and diagonals.
    groups: BTreeMap<usize, Vec<(usize, Vec<i64>)>>,
}

impl CompactTransform {
    /// The matrix times `scale` at `level`, in a ring of complex slots.
    pub fn new(params: &Arc<Params>, diagonals: &Diagonals, level: usize, scale: f64) -> Self {
        let slots = params.max_slots();
        let step = linear::step(diagonals.keys().copied(), slots);
        let mut groups: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        let mut coefficients = vec![0.0; params.degree()];
        for (&k, diagonal) in diagonals {
            let (giant, baby) = (k - k % step, k % step);
            let mut rotated = diagonal.clone();
            rotated.rotate_right(giant);
            match params.slots() {
                Slots::Complex(embedding) => embedding.to_coefficients(&rotated, &mut coefficients),
                Slots::Real(embedding) => {
                    let real: Vec<f64> = rotated.iter().map(|value| value.re).collect();
                    embedding.to_coefficients(&real, &mut coefficients);
                }
            }
            let integer = |value: &f64| (value * scale).round_ties_even() as i64;
            let integers: Vec<i64> = coefficients.iter().map(integer).collect();
            groups.entry(giant).or_default().push((baby, integers));
        }
        let all = groups.values().flatten().flat_map(|(_, integers)| integers);
        let largest = all.map(|x| x.unsigned_abs()).max().unwrap_or(0);
        let norms = diagonals.values().flatten().map(|value| value.norm_sqr());
        let square = norms.sum::<f64>() / slots as f64;
        CompactTransform { level, scale, square, count: diagonals.len(), largest, groups }
    }

    /// The level that it takes ciphertexts at.
    pub fn level(&self) -> usize {
        self.level
    }

    /// What the scale of an operand is multiplied by.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// What it multiplies norms by: products of butterflies are multiples of unitary matrices.
    pub fn gain(&self) -> f64 {
        self.square.sqrt()
    }

    /// The rotations that it needs keys for.
    pub fn rotations(&self) -> BTreeSet<i64> {
        let babies = self.groups.values().flatten().map(|(baby, _)| *baby);
        let steps = self.groups.keys().copied().chain(babies);
        steps.filter(|&step| step != 0).map(|step| step as i64).collect()
    }

    /// Bytes of the diagonals in memory.
    pub fn memory(&self) -> usize {
        self.groups.values().flatten().map(|(_, integers)| integers.len() * 8).sum()
    }

    /// The error that rounding the diagonals leaves, relative to the results: that of a slot of a
    /// rounded diagonal, √(δ/12)/scale, once for each diagonal, over the norm of a row.
    pub fn rounding(&self, delta: f64) -> f64 {
        (self.count as f64 * delta / 12.0 / self.square).sqrt() / self.scale
    }

    /// The matrix times the slots of `a`, which is at the level and of degree 1: of degree 1, at
    /// the product of the scales, not rescaled.
    pub fn apply(&self, evaluator: &Evaluator, a: &Ciphertext) -> Result<Ciphertext> {
        let babies: BTreeSet<usize> =
            self.groups.values().flatten().map(|(baby, _)| *baby).collect();
        let steps: Vec<i64> = babies.iter().map(|&baby| baby as i64).collect();
        let rotated = evaluator.rotate_hoisted(&evaluator.decompose(a)?, &steps)?;
        let rotated: BTreeMap<usize, Ciphertext> = babies.into_iter().zip(rotated).collect();
        let mut sum: Option<Ciphertext> = None;
        for (&giant, diagonals) in &self.groups {
            let terms: Vec<_> =
                diagonals.iter().map(|(baby, integers)| (&rotated[baby], &integers[..])).collect();
            let part = evaluator.rotate(&self.weighted_sum(&terms), giant as i64)?;
            match &mut sum {
                Some(sum) => {
                    let parts = sum.parts.iter_mut().zip(&part.parts);
                    parts.for_each(|(sum, part)| sum.add_assign(part));
                }
                None => sum = Some(part),
            }
        }
        // A matrix has at least one diagonal.
        Ok(sum.unwrap_or_else(|| a.clone()))
    }

    /// `Σ x d`, slot by slot; each diagonal is lifted once for both parts.
    fn weighted_sum(&self, terms: &[(&Ciphertext, &[i64])]) -> Ciphertext {
        let (first, _) = terms[0];
        let (params, level) = (first.params(), first.level());
        let degree = params.degree();
        let [mut constant, mut linear] = [(); 2].map(|()| Poly::scratch(params, level));
        let (zeroth, first_order) = (constant.residues_mut(), linear.residues_mut());
        each_pair(zeroth, first_order, degree, |index, zeroth, first_order| {
            let table = params.table(index);
            let m = table.modulus();
            let mut lifted = params.pool.take(terms.len() * degree);
            for (limb, (_, integers)) in lifted.chunks_exact_mut(degree).zip(terms) {
                if self.largest < m.value() {
                    convert::lift(limb, integers, m);
                } else {
                    let residues = integers.iter().map(|&x| m.from_i64(x));
                    limb.iter_mut().zip(residues).for_each(|(out, x)| *out = x);
                }
                table.forward(limb);
            }
            let right: Vec<&[u64]> = lifted.chunks_exact(degree).collect();
            for (part, out) in [zeroth, first_order].into_iter().enumerate() {
                let left: Vec<&[u64]> =
                    terms.iter().map(|(x, _)| x.parts()[part].limb(index)).collect();
                poly::dot(out, &left, &right, m);
            }
        });
        let mut meta = first.meta;
        meta.scale *= self.scale;
        Ciphertext { parts: vec![constant, linear], meta }
    }
}
