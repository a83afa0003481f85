//! Compact transform: multiplies a ciphertext's slots by a plain matrix of few diagonals. Server
//! only.
//!
//! The diagonals of the products of a Fourier transform are at multiples of one step h. Writing
//! `k = (b g + i) h` the product is a sum over g of `rot_(bgh)` of sums over i of diagonals times
//! `rot_(ih)`; and, by Horner's rule, of rotations by `bh` again and again: b keys in all. Diagonals
//! are kept as integers, one word a coefficient: at 30 primes the residues of one would take 30. They
//! are lifted to a prime and transformed when the product there is due (docs/ckks.md, section 10.3).
//!
//! # Steps, groups and what they enlarge
//!
//! U = S_n ⋯ S_4 S_2 B, n = N/2: B reverses the bits of indices, and S_2h has the diagonals 0, h
//! and −h. B is left out on both ways: coefficients are in bit-reversed order in between. The log2
//! n steps are multiplied together in two to four groups, one level each. A group of k steps has
//! 2^(k+1) − 1 diagonals, multiples of its smallest h, and 2^k, which wrap around, where it holds
//! S_n. Every S is √2 times a unitary matrix, every group 2^(k/2) times one (2^(−k/2) in the other
//! direction): errors that enter before it are multiplied by exactly that.
//!
//! Giant steps go by Horner's rule; sums of coefficients-to-slots stay modulo Q P until the last
//! product divides by P q_l (`bootstrap/linear.rs`, `lazy_switch.rs`).

use super::super::Complex;
use super::super::ciphertext::Ciphertext;
use super::super::evaluate::Evaluator;
use super::super::key_switch::table;
use super::super::lazy_switch::{Hoisted, WidePair};
use super::super::params::{Params, Slots};
use super::super::poly::Poly;
use super::super::spec::Ring;
use super::dft::Diagonals;
use crate::error::{Error, Result};
use ciphervec_arith::ntt::MIN_DEGREE;
use ciphervec_arith::parallel::*;
use ciphervec_arith::{NttTable, convert, poly};
use std::sync::Arc;

/// What a giant rotation costs in baby ones, divided by P each time, or once a giant step.
const GIANT: [usize; 2] = [2, 5];

/// Words of rotations, and of lifted diagonals, that a product works on at a time: one megabyte, and
/// four.
const CACHED: usize = 1 << 17;
const LIFTED: usize = 1 << 19;

/// How a product is taken.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Whether steps are rotations to the right: the diagonals are at multiples of −h.
    pub backward: bool,
    /// By how much the slots of the operand are rotated, and those of the product: that makes the
    /// steps of all diagonals have one sign.
    pub from: usize,
    pub to: usize,
    /// Whether sums are kept modulo Q P until a giant step: where Q is much wider than P.
    pub lazy: bool,
    /// The baby rotations that a key less may cost.
    pub key_cost: usize,
    /// Whether the product has twice as many slots, the second half times −i: their real parts are
    /// then both parts of the first half.
    pub split: bool,
}

/// A matrix over all slots or over slots that repeat, for ciphertexts of one level.
pub struct CompactTransform {
    level: usize,
    /// What the diagonals were multiplied by before they were rounded.
    scale: f64,
    /// The mean square of a row's Euclidean norm.
    square: f64,
    count: usize,
    /// Coefficients of a diagonal that need not be zero.
    coefficients: usize,
    /// The largest integer.
    largest: u64,
    slots: usize,
    /// ±h.
    step: i64,
    /// Baby steps of a giant one.
    babies: usize,
    lazy: bool,
    /// For each giant step its baby steps and diagonals.
    groups: Vec<Vec<(usize, Vec<i64>)>>,
    /// The transforms of diagonals that are polynomials in a power of X, modulo all primes of the
    /// level and the special ones; none where they are not.
    tables: Vec<NttTable>,
}

/// The number of slots after which all diagonals repeat.
fn period(diagonals: &Diagonals, slots: usize) -> usize {
    let repeats =
        |period: usize| diagonals.values().all(|d| d.iter().zip(&d[period..]).all(|(a, b)| a == b));
    (0..slots.ilog2()).map(|log| 1 << log).find(|&period| repeats(period)).unwrap_or(slots)
}

/// The number of baby steps with the least work and the fewest keys for `count` diagonals.
fn babies(count: usize, route: Route) -> usize {
    let (giant, key) = (GIANT[usize::from(route.lazy)], route.key_cost);
    let cost = |babies: usize| {
        let giants = count.div_ceil(babies) - 1;
        giants * giant + (babies - 1) * (1 + key) + key * giants.min(1)
    };
    (1..=count).min_by_key(|&babies| cost(babies)).unwrap_or(1)
}

/// What all steps are multiples of.
pub(super) fn unit(diagonals: &Diagonals, slots: usize) -> usize {
    let steps = diagonals.keys().map(|&k| k.min(slots - k)).filter(|&k| k != 0);
    steps.min().unwrap_or(slots)
}

impl CompactTransform {
    /// The matrix times `scale` at `level`, over as many slots as its diagonals have, which repeat
    /// if the ring has more.
    ///
    /// # Errors
    /// [`Error::Range`] for diagonals that are not at multiples of their smallest step after the
    /// rotations of `route`.
    pub fn new(
        params: &Arc<Params>,
        diagonals: &Diagonals,
        level: usize,
        scale: f64,
        route: Route,
    ) -> Result<Self> {
        let slots = diagonals.values().next().map_or(1, Vec::len);
        let unit = unit(diagonals, slots);
        let babies = babies(diagonals.len(), route);
        let period = if route.split { 2 * slots } else { period(diagonals, slots) };
        let ring = params.ring();
        let transformed = (ring.parts() * period).max(MIN_DEGREE);
        let primes = 0..=level;
        let special = params.special_tables().iter();
        let tables = if transformed < params.degree() {
            let all = primes.map(|index| params.table(index)).chain(special);
            let small = all.map(|table| {
                let prime = table.modulus().value();
                match ring {
                    Ring::Standard => NttTable::new(transformed, prime),
                    Ring::ConjugateInvariant => NttTable::conjugate_invariant(transformed, prime),
                }
            });
            small.collect::<core::result::Result<Vec<_>, _>>()?
        } else {
            Vec::new()
        };
        let kept = if tables.is_empty() { params.degree() } else { transformed };
        let mut groups = vec![Vec::new(); diagonals.len().div_ceil(babies)];
        let mut spread = vec![0.0; params.degree()];
        for (&k, diagonal) in diagonals {
            let step = (k + slots + route.to - route.from) % slots;
            let step = if route.backward { (slots - step) % slots } else { step };
            let place = step / unit;
            if step % unit != 0 || place >= diagonals.len() {
                return Err(Error::Range {
                    what: "a diagonal of a product of butterflies",
                    expected: format!("at one of {} multiples of {unit}", diagonals.len()),
                    actual: step.to_string(),
                });
            }
            let (giant, baby) = (place / babies, place % babies);
            let mut rotated = diagonal.clone();
            rotated.rotate_left(route.to);
            if route.split {
                rotated.extend_from_within(..);
                rotated[slots..].iter_mut().for_each(|value| *value *= -Complex::i());
            }
            let back = giant * babies * unit % slots;
            if route.backward {
                rotated.rotate_left(back)
            } else {
                rotated.rotate_right(back)
            }
            rotated.truncate(period);
            match params.slots() {
                Slots::Complex(embedding) => embedding.to_coefficients(&rotated, &mut spread),
                Slots::Real(embedding) => {
                    let real: Vec<f64> = rotated.iter().map(|value| value.re).collect();
                    embedding.to_coefficients(&real, &mut spread);
                }
            }
            let gap = params.degree() / kept;
            let integer = |value: &f64| (value * scale).round_ties_even() as i64;
            groups[giant].push((baby, spread.iter().step_by(gap).map(integer).collect()));
        }
        let all = groups.iter().flatten().flat_map(|(_, integers): &(_, Vec<i64>)| integers);
        let largest = all.map(|x| x.unsigned_abs()).max().unwrap_or(0);
        Ok(CompactTransform {
            level,
            scale,
            square: square(diagonals, slots),
            count: diagonals.len(),
            coefficients: (ring.parts() * period).min(params.degree()),
            largest,
            slots: if route.split { 2 * slots } else { slots },
            step: if route.backward { -(unit as i64) } else { unit as i64 },
            babies,
            lazy: route.lazy,
            groups,
            tables,
        })
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

    /// Baby and giant steps.
    fn steps(&self) -> [i64; 2] {
        [self.step, self.step * self.babies as i64]
    }

    /// The rotations that it needs keys for.
    pub fn rotations(&self) -> Vec<i64> {
        let [baby, giant] = self.steps();
        let babies = (1..self.babies as i64).map(|i| i * baby);
        let giants = (self.groups.len() > 1).then_some(giant);
        let all = babies.chain(giants).map(|steps| steps.rem_euclid(self.slots as i64));
        all.collect()
    }

    /// Bytes of the diagonals in memory.
    pub fn memory(&self) -> usize {
        self.groups.iter().flatten().map(|(_, integers)| integers.len() * 8).sum()
    }

    /// The error that rounding the diagonals leaves, relative to the results: that of a slot of a
    /// rounded diagonal, √(c/12)/scale for c coefficients, once for each diagonal, over the norm of
    /// a row; in a ring where a value's mean square is `expansion` times that of a coefficient of
    /// `degree`.
    pub fn rounding(&self, expansion: f64, degree: usize) -> f64 {
        let delta = expansion * self.coefficients as f64 / degree as f64;
        (self.count as f64 * delta / 12.0 / self.square).sqrt() / self.scale
    }

    /// The matrix times the slots of `a`, which is at the level and of degree 1: of degree 1, at
    /// the product of the scales, rescaled.
    pub fn apply(&self, evaluator: &Evaluator, a: &Ciphertext) -> Result<Ciphertext> {
        let mut product = if self.lazy {
            let parts = self.sum(evaluator, a)?.divide(true);
            let mut meta = a.meta;
            meta.scale /= a.params().prime(self.level).value() as f64;
            Ciphertext { parts, meta }
        } else {
            evaluator.rescale(&self.sum_divided(evaluator, a)?)?
        };
        product.meta.scale *= self.scale;
        Ok(product)
    }

    /// The matrix times P times the slots of `a`, modulo Q P.
    pub(super) fn sum(&self, evaluator: &Evaluator, a: &Ciphertext) -> Result<WidePair> {
        let params = a.params();
        let [baby, giant] = self.steps();
        let hoisted = Hoisted::new(a)?;
        let keys = (1..self.babies as i64).map(|i| {
            let (element, key) = evaluator.rotation_key(a, i * baby)?;
            Ok((key, params.automorphism(element)))
        });
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let mut sums: Vec<WidePair> =
            self.groups.iter().map(|_| WidePair::scratch(params, self.level)).collect();
        let rows = transposed(sums.iter_mut().map(WidePair::rows), hoisted.limbs());
        let degree = params.degree();
        each_limb(rows, |index, outs| {
            let mut rotated = params.pool.take(2 * degree * self.babies);
            for (i, limbs) in rotated.chunks_exact_mut(2 * degree).enumerate() {
                let (first, second) = limbs.split_at_mut(degree);
                match i.checked_sub(1).map(|i| &keys[i]) {
                    None => hoisted.itself(index, [first, second]),
                    Some((key, permutation)) => {
                        hoisted.rotated(index, key, permutation, [first, second]);
                    }
                }
            }
            let halves = |i: usize| rotated[2 * i * degree..][..2 * degree].split_at(degree);
            let babies: Vec<[&[u64]; 2]> =
                (0..self.babies).map(halves).map(|(a, b)| [a, b]).collect();
            self.weighted_sums(params, index, &babies, outs);
        });
        // All that memory holds from here on are the sums.
        drop(hoisted);
        let mut sums = sums.into_iter().rev();
        // There is at least one diagonal, and so one group.
        let mut total = sums.next().unwrap_or_else(|| WidePair::scratch(params, self.level));
        if self.groups.len() > 1 {
            let (element, key) = evaluator.rotation_key(a, giant)?;
            let permutation = params.automorphism(element);
            for sum in sums {
                total = total.rotated(key, &permutation);
                total.add_assign(&sum);
            }
        }
        Ok(total)
    }

    /// The same with rotations that are divided by P one by one.
    fn sum_divided(&self, evaluator: &Evaluator, a: &Ciphertext) -> Result<Ciphertext> {
        let (params, degree) = (a.params(), a.params().degree());
        let [baby, giant] = self.steps();
        let steps: Vec<i64> = (0..self.babies as i64).map(|i| i * baby).collect();
        let rotated = evaluator.rotate_hoisted(&evaluator.decompose(a)?, &steps)?;
        let pair = |_| Ciphertext {
            parts: (0..2).map(|_| Poly::scratch(params, self.level)).collect(),
            meta: a.meta,
        };
        let mut sums: Vec<Ciphertext> = self.groups.iter().map(pair).collect();
        let limbs = sums.iter_mut().map(|sum| {
            let mut parts = sum.parts.iter_mut().map(|part| part.residues_mut());
            let [first, second] = [(); 2].map(|()| parts.next().unwrap_or_default());
            first.chunks_exact_mut(degree).zip(second.chunks_exact_mut(degree)).map(|(a, b)| [a, b])
        });
        let rows = transposed(limbs, self.level + 1);
        each_limb(rows, |index, outs| {
            let babies: Vec<[&[u64]; 2]> =
                rotated.iter().map(|x| [0, 1].map(|part| x.parts()[part].limb(index))).collect();
            self.weighted_sums(params, index, &babies, outs);
        });
        let mut sums = sums.into_iter().rev();
        let mut total = sums.next().unwrap_or_else(|| a.clone());
        for sum in sums {
            total = evaluator.rotate(&total, giant)?;
            total.parts.iter_mut().zip(&sum.parts).for_each(|(sum, part)| sum.add_assign(part));
        }
        Ok(total)
    }

    /// `Σ x d` of every group modulo one prime; each diagonal is lifted once for both parts.
    fn weighted_sums(
        &self,
        params: &Params,
        index: usize,
        babies: &[[&[u64]; 2]],
        outs: Vec<[&mut [u64]; 2]>,
    ) {
        let table = table(params, self.level, index);
        // Of a polynomial in X^g those of the polynomial in X, each g times.
        let table = self.tables.get(index).unwrap_or(table);
        let (degree, m, few) = (params.degree(), table.modulus(), table.degree());
        let gap = degree / few;
        // Groups whose diagonals are lifted together; all of them take the same words before the next
        // ones come.
        let together = (LIFTED / (self.babies * few)).clamp(1, self.groups.len());
        let tile = (1 << (CACHED / (2 * self.babies)).ilog2()).clamp(gap, degree);
        let mut lifted = params.pool.take(together * self.babies * few);
        let mut outs = outs;
        for (groups, outs) in self.groups.chunks(together).zip(outs.chunks_mut(together)) {
            let diagonals = groups.iter().flatten();
            for (limb, (_, integers)) in lifted.chunks_exact_mut(few).zip(diagonals) {
                self.lift(table, integers, limb);
            }
            for at in (0..degree).step_by(tile) {
                let (words, values) = (at..at + tile, at / gap..(at + tile) / gap);
                let mut limbs = lifted.chunks_exact(few);
                for (group, outs) in groups.iter().zip(outs.iter_mut()) {
                    let right = limbs.by_ref().take(group.len());
                    let right: Vec<&[u64]> = right.map(|limb| &limb[values.clone()]).collect();
                    for (part, out) in outs.iter_mut().enumerate() {
                        let left = group.iter().map(|(i, _)| &babies[*i][part][words.clone()]);
                        let left: Vec<&[u64]> = left.collect();
                        poly::dot_repeated(&mut out[words.clone()], &left, &right, m);
                    }
                }
            }
        }
    }

    /// The values of a diagonal modulo a prime.
    fn lift(&self, table: &NttTable, integers: &[i64], out: &mut [u64]) {
        let m = table.modulus();
        if self.largest < m.value() {
            convert::lift(out, integers, m);
        } else {
            let residues = integers.iter().map(|&x| m.from_i64(x));
            out.iter_mut().zip(residues).for_each(|(out, x)| *out = x);
        }
        table.forward(out);
    }
}

/// What rounding the diagonals costs in proportion: the root of how many coefficients are rounded,
/// over the norm of a row.
pub(super) fn rounded(diagonals: &Diagonals, slots: usize) -> f64 {
    let coefficients = diagonals.len() * period(diagonals, slots);
    (coefficients as f64 / square(diagonals, slots)).sqrt()
}

/// The mean square of a row's norm.
fn square(diagonals: &Diagonals, slots: usize) -> f64 {
    diagonals.values().flatten().map(|value| value.norm_sqr()).sum::<f64>() / slots as f64
}

/// The limbs of several pairs, prime by prime.
fn transposed<'a>(
    pairs: impl Iterator<Item = impl Iterator<Item = [&'a mut [u64]; 2]>>,
    limbs: usize,
) -> Vec<Vec<[&'a mut [u64]; 2]>> {
    let mut rows: Vec<Vec<_>> = (0..limbs).map(|_| Vec::new()).collect();
    for pair in pairs {
        rows.iter_mut().zip(pair).for_each(|(row, limbs)| row.push(limbs));
    }
    rows
}

/// Runs `work` on the limbs modulo each prime, on other threads as well where there are any.
fn each_limb(
    rows: Vec<Vec<[&mut [u64]; 2]>>,
    work: impl Fn(usize, Vec<[&mut [u64]; 2]>) + Send + Sync,
) {
    if current_num_threads() > 1 {
        rows.into_par_iter().enumerate().for_each(|(index, row)| work(index, row));
    } else {
        rows.into_iter().enumerate().for_each(|(index, row)| work(index, row));
    }
}
