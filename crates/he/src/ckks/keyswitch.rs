//! Key switching and rescaling. Polynomials and switching keys enter; polynomials under another key or of a lower level leave.
//! Server side.
//!
//! Hybrid key switching (Han & Ki 2019, IACR ePrint 2019/688): the input is cut into digits of a few primes, each digit is
//! extended to all primes, multiplied with its part of the key modulo Q P, and the sum is divided by P (docs/ckks.md, section 4).

use super::keys::SwitchKey;
use super::params::Params;
use super::poly::{Ntt, Poly, each, each_pair};
use super::words::Words;
use ciphervec_arith::basis::BasisConversion;
use ciphervec_arith::{NttTable, convert, poly};
use rayon::prelude::*;
use std::sync::Arc;

/// The digits of a polynomial, extended to all primes of its level and the special ones, in NTT form: what several rotations
/// of one ciphertext share. Modulo its own primes a digit is the polynomial itself, which is not repeated here.
#[derive(Clone)]
pub(super) struct Digits {
    /// `[prime][digit]`.
    extended: Words,
}

/// Limbs of an extended polynomial at `level`.
fn wide(params: &Params, level: usize) -> usize {
    level + 1 + params.special_tables().len()
}

/// The transform of limb `index` of an extended polynomial at `level`.
fn table(params: &Params, level: usize, index: usize) -> &NttTable {
    if index <= level { params.table(index) } else { &params.special_tables()[index - level - 1] }
}

impl Digits {
    /// Cuts a polynomial into digits and transforms them.
    pub fn new(input: &Poly<Ntt>) -> Self {
        let mut extended = extend(input);
        let (params, level) = (input.params(), input.level());
        each(&mut extended, params.digits(level) * params.degree(), |index, limbs| {
            transform(params, level, index, limbs);
        });
        Digits { extended }
    }

    /// The inner products with both halves of a key, modulo Q P; `input` is what the digits were cut from.
    pub fn switch(&self, input: &Poly<Ntt>, key: &SwitchKey) -> [Words; 2] {
        let (params, level) = (input.params(), input.level());
        let (degree, count) = (params.degree(), params.digits(level));
        let mut sums = [(); 2].map(|()| params.pool.take(wide(params, level) * degree));
        let [first, second] = &mut sums;
        each_pair(first, second, degree, |index, first, second| {
            let limbs = &self.extended[index * count * degree..][..count * degree];
            dot(input, key, index, limbs, [first, second]);
        });
        sums
    }
}

/// The digits of a polynomial modulo all other primes, in coefficient form: `[prime][digit]`.
fn extend(input: &Poly<Ntt>) -> Words {
    let (params, level) = (input.params(), input.level());
    let (degree, count) = (params.degree(), params.digits(level));
    let coefficients = input.coefficients();
    let mut extended = params.pool.take(wide(params, level) * count * degree);
    let mut targets: Vec<Vec<&mut [u64]>> = (0..count).map(|_| Vec::new()).collect();
    for (index, limbs) in extended.chunks_exact_mut(count * degree).enumerate() {
        for (digit, limb) in limbs.chunks_exact_mut(degree).enumerate() {
            if !params.digit_range(level, digit).contains(&index) {
                targets[digit].push(limb);
            }
        }
    }
    let convert = |digit: usize, mut targets: Vec<&mut [u64]>| {
        let range = params.digit_range(level, digit);
        let sources: Vec<&[u64]> = range.map(|index| coefficients.limb(index)).collect();
        params.mod_up(level, digit).convert(&sources, &mut targets);
    };
    if rayon::current_num_threads() > 1 {
        let targets = targets.into_par_iter().enumerate();
        targets.for_each(|(digit, targets)| convert(digit, targets));
    } else {
        let targets = targets.into_iter().enumerate();
        targets.for_each(|(digit, targets)| convert(digit, targets));
    }
    extended
}

/// Transforms the digits modulo one prime, all but the one that is at hand already.
fn transform(params: &Params, level: usize, index: usize, limbs: &mut [u64]) {
    let table = table(params, level, index);
    for (digit, limb) in limbs.chunks_exact_mut(params.degree()).enumerate() {
        if !params.digit_range(level, digit).contains(&index) {
            table.forward(limb);
        }
    }
}

/// The inner products of all digits with both halves of a key modulo one prime.
fn dot(
    input: &Poly<Ntt>,
    key: &SwitchKey,
    index: usize,
    limbs: &[u64],
    [first, second]: [&mut [u64]; 2],
) {
    let (params, level) = (input.params(), input.level());
    let digits: Vec<&[u64]> = limbs
        .chunks_exact(params.degree())
        .enumerate()
        .map(|(digit, limb)| {
            if params.digit_range(level, digit).contains(&index) { input.limb(index) } else { limb }
        })
        .collect();
    let halves = (0..digits.len()).map(|digit| key.limbs(params, level, digit, index));
    let (zeroth, linear): (Vec<_>, Vec<_>) = halves.map(|[b, a]| (b, a)).unzip();
    let m = table(params, level, index).modulus();
    poly::dot_pair(first, second, &digits, &zeroth, &linear, m);
}

/// The limbs of several buffers, those of one prime together: what is done to them shares the roots of its transform, which at
/// degree 2^15 are as large as two limbs.
fn rows<'a>(
    buffers: impl IntoIterator<Item = &'a mut [u64]>,
    degree: usize,
) -> Vec<Vec<&'a mut [u64]>> {
    let mut rows = Vec::new();
    for buffer in buffers {
        for (index, limb) in buffer.chunks_exact_mut(degree).enumerate() {
            if rows.len() <= index {
                rows.push(Vec::new());
            }
            rows[index].push(limb);
        }
    }
    rows
}

/// Runs `work` on the limbs of every prime, on other threads as well where there are any.
fn each_row(rows: Vec<Vec<&mut [u64]>>, work: impl Fn(usize, Vec<&mut [u64]>) + Send + Sync) {
    if rayon::current_num_threads() > 1 {
        rows.into_par_iter().enumerate().for_each(|(index, row)| work(index, row));
    } else {
        rows.into_iter().enumerate().for_each(|(index, row)| work(index, row));
    }
}

/// Switches a polynomial in one go: digits modulo one prime are multiplied while they are in the cache.
pub(super) fn switch(input: &Poly<Ntt>, key: &SwitchKey) -> [Words; 2] {
    let mut extended = extend(input);
    let (params, level) = (input.params(), input.level());
    let (degree, count) = (params.degree(), params.digits(level));
    let mut sums = [(); 2].map(|()| params.pool.take(wide(params, level) * degree));
    let [first, second] = &mut sums;
    let work = |index, limbs: &mut [u64], first: &mut [u64], second: &mut [u64]| {
        transform(params, level, index, limbs);
        dot(input, key, index, limbs, [first, second]);
    };
    if rayon::current_num_threads() > 1 {
        let pieces = extended.par_chunks_exact_mut(count * degree);
        let sums = first.par_chunks_exact_mut(degree).zip(second.par_chunks_exact_mut(degree));
        let pieces = pieces.zip(sums).enumerate();
        pieces.for_each(|(index, (limbs, (a, b)))| work(index, limbs, a, b));
    } else {
        let pieces = extended.chunks_exact_mut(count * degree);
        let sums = first.chunks_exact_mut(degree).zip(second.chunks_exact_mut(degree));
        let pieces = pieces.zip(sums).enumerate();
        pieces.for_each(|(index, (limbs, (a, b)))| work(index, limbs, a, b));
    }
    sums
}

/// Divides both sums modulo Q P by P and rounds, (x − [x]_P) P⁻¹ modulo q_j; then adds `plus`, and applies an automorphism.
pub(super) fn mod_down(
    params: &Arc<Params>,
    level: usize,
    mut sums: [Words; 2],
    plus: [Option<&Poly<Ntt>>; 2],
    permutation: Option<&[u32]>,
) -> Vec<Poly<Ntt>> {
    let (degree, kept) = (params.degree(), (level + 1) * params.degree());
    let special = rows(sums.iter_mut().map(|sum| &mut sum[kept..]), degree);
    each_row(special, |index, limbs| {
        limbs.into_iter().for_each(|limb| params.special_tables()[index].inverse(limb));
    });
    let mut remainders = remainders(params, params.mod_down(level), kept, &sums);
    let pairs = sums.iter_mut().zip(&mut remainders);
    let pairs = pairs.flat_map(|(sum, remainder)| [&mut sum[..kept], &mut remainder[..]]);
    each_row(rows(pairs, degree), |index, mut limbs| {
        let table = params.table(index);
        let inverse = &params.special_inverses()[index];
        for (pair, plus) in limbs.chunks_exact_mut(2).zip(plus) {
            let [limb, remainder] = pair else { continue };
            table.forward(remainder);
            poly::sub_scale_assign(limb, remainder, inverse, table.modulus());
            if let Some(plus) = plus {
                poly::add_assign(limb, plus.limb(index), table.modulus());
            }
            if let Some(permutation) = permutation {
                poly::permute(remainder, limb, permutation);
            }
        }
    });
    let results = if permutation.is_some() { remainders } else { sums };
    results.map(|words| Poly::from_words(params, level, words)).into()
}

/// What lies beyond `kept` words of each sum, in coefficient form, extended to the primes of those before.
fn remainders(
    params: &Params,
    conversion: &BasisConversion,
    kept: usize,
    sums: &[Words; 2],
) -> [Words; 2] {
    sums.each_ref().map(|sum| {
        let mut remainder = params.pool.take(kept);
        let sources: Vec<&[u64]> = sum[kept..].chunks_exact(params.degree()).collect();
        let mut targets: Vec<&mut [u64]> = remainder.chunks_exact_mut(params.degree()).collect();
        conversion.convert(&sources, &mut targets);
        remainder
    })
}

/// (x + P c) / (P q_level), rounded: relinearisation and rescale in one, at the price of the first. Both divisions leave one
/// remainder, modulo P q_level.
pub(super) fn mod_down_and_rescale(
    params: &Arc<Params>,
    level: usize,
    mut sums: [Words; 2],
    plus: [&Poly<Ntt>; 2],
) -> Vec<Poly<Ntt>> {
    let (degree, kept) = (params.degree(), level * params.degree());
    for (sum, plus) in sums.iter_mut().zip(plus) {
        each(&mut sum[..kept + degree], degree, |index, limb| {
            let m = params.prime(index);
            let mut scaled = params.pool.take(degree);
            scaled.copy_from_slice(plus.limb(index));
            poly::scalar_mul_assign(&mut scaled, params.special_residue(index), m);
            poly::add_assign(limb, &scaled, m);
        });
    }
    let dropped = rows(sums.iter_mut().map(|sum| &mut sum[kept..]), degree);
    each_row(dropped, |index, limbs| {
        let table = table(params, level, level + index);
        limbs.into_iter().for_each(|limb| table.inverse(limb));
    });
    let mut remainders = remainders(params, params.mod_down_and_rescale(level), kept, &sums);
    let pairs = sums.iter_mut().zip(&mut remainders);
    let pairs = pairs.flat_map(|(sum, remainder)| [&mut sum[..kept], &mut remainder[..]]);
    each_row(rows(pairs, degree), |index, mut limbs| {
        let table = params.table(index);
        let m = table.modulus();
        let special = params.special_inverses()[index].value;
        let inverse = m.shoup(m.mul(special, params.prime_inverses(level)[index].value));
        for pair in limbs.chunks_exact_mut(2) {
            let [limb, remainder] = pair else { continue };
            table.forward(remainder);
            poly::sub_scale_assign(limb, remainder, &inverse, m);
        }
    });
    sums.map(|sum| Poly::from_words(params, level - 1, sum)).into()
}

/// Divides all parts of a ciphertext by the last prime and rounds: one level lower.
pub(super) fn rescale(parts: &[Poly<Ntt>]) -> Vec<Poly<Ntt>> {
    let (params, level) = (parts[0].params(), parts[0].level());
    let last = parts.iter().map(|part| {
        let mut last = params.pool.take(params.degree());
        last.copy_from_slice(part.limb(level));
        params.table(level).inverse(&mut last);
        last
    });
    let last: Vec<Words> = last.collect();
    let mut out: Vec<Poly<Ntt>> = parts.iter().map(|_| Poly::scratch(params, level - 1)).collect();
    let limbs = rows(out.iter_mut().map(Poly::residues_mut), params.degree());
    each_row(limbs, |index, limbs| {
        let table = params.table(index);
        let m = table.modulus();
        // (x - r) / q as (r - x) (-1/q), which leaves the input where it is.
        let negated = m.shoup(m.neg(params.prime_inverses(level)[index].value));
        for ((limb, part), last) in limbs.into_iter().zip(parts).zip(&last) {
            limb.copy_from_slice(last);
            convert::recentre(limb, params.prime(level), m);
            table.forward(limb);
            poly::sub_scale_assign(limb, part.limb(index), &negated, m);
        }
    });
    out
}
