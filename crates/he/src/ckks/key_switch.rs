//! Key switching, and rescaling, of polynomials in NTT form. Server only.
//!
//! Hybrid key switching (Han & Ki 2019, IACR ePrint 2019/688): the input is cut into digits of a
//! few primes, each digit is extended to all primes, multiplied with its part of the key modulo Q
//! P, and the sum is divided by P (docs/ckks.md, section 4).
//!
//! # Digits, division, costs
//!
//! The digit \[c]_i is c modulo D_i, centred, extended to all primes exactly (`arith::basis`).
//! Since Σ \[c]_i g_i ≡ c modulo Q_l,
//!
//! ```text
//! Σ_i [c]_i (b_i + a_i s) = P c s' + Σ_i [c]_i e_i        modulo Q_l P ,
//! ```
//!
//! and dividing by P with rounding leaves c s' and the noise of docs/ckks.md, section 5. Where a
//! rescale follows, both divisions are one: P (c_0, c_1) is added first, and the remainder is that
//! modulo P q_l.
//!
//! With l + 1 primes, k special ones and β digits: l + 1 inverse transforms of c, β (l + 1 + k) −
//! (l + 1) forward ones of its digits, 2k inverse and 2 (l + 1) forward ones to divide both sums by
//! P. With 12 primes, 4 special ones and three digits that is 80.

use super::buffer_pool::Buffer;
use super::keys::KeySwitchKey;
use super::params::Params;
use super::poly::{Ntt, Poly, each};
use ciphervec_arith::parallel::*;
use ciphervec_arith::{NttTable, convert, poly};

/// The digits of a polynomial, extended to all primes of its level and the special ones, in NTT
/// form: what several rotations of one ciphertext share. Modulo its own primes a digit is the
/// polynomial itself, which is not repeated here.
#[derive(Clone)]
pub(super) struct DecomposedPoly {
    /// `[prime][digit]`.
    extended: Buffer,
}

/// Limbs of an extended polynomial at `level`.
pub(super) fn wide(params: &Params, level: usize) -> usize {
    level + 1 + params.special_tables().len()
}

/// The transform of limb `index` of an extended polynomial at `level`.
pub(super) fn table(params: &Params, level: usize, index: usize) -> &NttTable {
    if index <= level { params.table(index) } else { &params.special_tables()[index - level - 1] }
}

impl DecomposedPoly {
    /// Cuts a polynomial into digits and transforms them.
    pub fn new(input: &Poly<Ntt>) -> Self {
        let mut extended = extend(input);
        let (params, level) = (input.params(), input.level());
        each(&mut extended, params.digits(level) * params.degree(), |index, limbs| {
            transform(params, level, index, limbs);
        });
        DecomposedPoly { extended }
    }

    /// The digits modulo prime `index`, `length` words.
    pub fn row(&self, index: usize, length: usize) -> &[u64] {
        &self.extended[index * length..][..length]
    }

    /// The digits modulo each prime, ready for their products.
    fn rows(&self, length: usize) -> Vec<Row<'_>> {
        self.extended.chunks_exact(length).map(Row::Values).collect()
    }
}

/// The digits modulo one prime.
enum Row<'a> {
    /// In NTT form.
    Values(&'a [u64]),
    /// Still to be transformed.
    Coefficients(&'a mut [u64]),
}

/// What follows the division of a key switch.
pub(super) enum PostProcess<'a> {
    /// Nothing.
    Keep,
    /// The automorphism that permutes values like this.
    Permute(&'a [u32]),
    /// Division by the last prime too: both leave one remainder, modulo P q_level, at the price of
    /// the first.
    Rescale,
}

/// A key switch: `plus` + [`input` under the key]. For each prime the products are summed, divided
/// and added while they are in the cache.
pub(super) struct KeySwitch<'a> {
    pub input: &'a Poly<Ntt>,
    pub key: &'a KeySwitchKey,
    pub plus: [Option<&'a Poly<Ntt>>; 2],
    pub post: PostProcess<'a>,
}

/// The digits of a polynomial modulo all other primes, in coefficient form: `[prime][digit]`.
pub(super) fn extend(input: &Poly<Ntt>) -> Buffer {
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
    if current_num_threads() > 1 {
        let targets = targets.into_par_iter().enumerate();
        targets.for_each(|(digit, targets)| convert(digit, targets));
    } else {
        let targets = targets.into_iter().enumerate();
        targets.for_each(|(digit, targets)| convert(digit, targets));
    }
    extended
}

/// Transforms the digits modulo one prime, all but the one that is at hand already.
pub(super) fn transform(params: &Params, level: usize, index: usize, limbs: &mut [u64]) {
    let table = table(params, level, index);
    for (digit, limb) in limbs.chunks_exact_mut(params.degree()).enumerate() {
        if !params.digit_range(level, digit).contains(&index) {
            table.forward(limb);
        }
    }
}

/// The inner products of all digits with both halves of a key modulo one prime.
pub(super) fn dot(
    input: &Poly<Ntt>,
    key: &KeySwitchKey,
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

impl KeySwitch<'_> {
    /// Both parts of the result.
    pub fn run(&self) -> Vec<Poly<Ntt>> {
        let mut extended = extend(self.input);
        let rows = extended.chunks_exact_mut(self.row_length()).map(Row::Coefficients);
        self.divide(rows.collect())
    }

    /// The same from digits that were cut and transformed before.
    pub fn run_decomposed(&self, digits: &DecomposedPoly) -> Vec<Poly<Ntt>> {
        let rows = digits.rows(self.row_length());
        self.divide(rows)
    }

    /// Words of all digits modulo one prime.
    fn row_length(&self) -> usize {
        let params = self.input.params();
        params.digits(self.input.level()) * params.degree()
    }

    /// (x - [x]_D) / D modulo every prime that is left, for the sums x modulo Q P and D = P, or P
    /// q_level.
    fn divide(&self, mut rows: Vec<Row<'_>>) -> Vec<Poly<Ntt>> {
        let (params, level) = (self.input.params(), self.input.level());
        let degree = params.degree();
        let (kept, conversion) = match self.post {
            PostProcess::Rescale => (level, params.mod_down_and_rescale(level)),
            _ => (level + 1, params.mod_down(level)),
        };
        let (above, below) = (rows.split_off(kept), rows);
        let mut last = [(); 2].map(|()| params.pool.take(above.len() * degree));
        let [first, second] = &mut last;
        each_row(above, [first, second], degree, |index, row, [first, second]| {
            self.sum(kept + index, row, [&mut *first, &mut *second]);
            let table = table(params, level, kept + index);
            table.inverse(first);
            table.inverse(second);
        });
        let mut results = last.map(|sums| {
            let mut remainder = params.pool.take(kept * degree);
            let sources: Vec<&[u64]> = sums.chunks_exact(degree).collect();
            let mut targets: Vec<&mut [u64]> = remainder.chunks_exact_mut(degree).collect();
            conversion.convert(&sources, &mut targets);
            remainder
        });
        let [first, second] = &mut results;
        each_row(below, [first, second], degree, |index, row, remainders| {
            let mut sums = params.pool.take(2 * degree);
            let (first, second) = sums.split_at_mut(degree);
            self.sum(index, row, [&mut *first, &mut *second]);
            for (half, (sum, remainder)) in [first, second].into_iter().zip(remainders).enumerate()
            {
                params.table(index).forward(remainder);
                self.finish(index, half, sum, remainder);
            }
        });
        results.map(|words| Poly::from_words(params, kept - 1, words)).into()
    }

    /// The sums of all digits times both halves of the key modulo one prime; before a rescaling P
    /// `plus` is part of them.
    fn sum(&self, index: usize, row: Row<'_>, mut sums: [&mut [u64]; 2]) {
        let (params, level) = (self.input.params(), self.input.level());
        let row = match row {
            Row::Values(limbs) => limbs,
            Row::Coefficients(limbs) => {
                transform(params, level, index, limbs);
                limbs
            }
        };
        dot(self.input, self.key, index, row, sums.each_mut().map(|sum| &mut **sum));
        if !matches!(self.post, PostProcess::Rescale) || index > level {
            return;
        }
        let m = params.prime(index);
        let mut scaled = params.pool.take(params.degree());
        for (sum, plus) in sums.into_iter().zip(self.plus) {
            let Some(plus) = plus else { continue };
            scaled.copy_from_slice(plus.limb(index));
            poly::scalar_mul_assign(&mut scaled, params.special_residue(index), m);
            poly::add_assign(sum, &scaled, m);
        }
    }

    /// Divides one sum and leaves the result where its remainder was.
    fn finish(&self, index: usize, half: usize, sum: &mut [u64], remainder: &mut [u64]) {
        let params = self.input.params();
        let m = params.prime(index);
        let inverse = params.special_inverses()[index].value;
        match self.post {
            PostProcess::Permute(permutation) => {
                poly::sub_scale_assign(sum, remainder, &m.shoup(inverse), m);
                if let Some(plus) = self.plus[half] {
                    poly::add_assign(sum, plus.limb(index), m);
                }
                poly::permute(remainder, sum, permutation);
            }
            PostProcess::Keep => {
                // (x - r) / P as (r - x) (-1/P), which leaves the result in the place of r.
                poly::sub_scale_assign(remainder, sum, &m.shoup(m.neg(inverse)), m);
                if let Some(plus) = self.plus[half] {
                    poly::add_assign(remainder, plus.limb(index), m);
                }
            }
            PostProcess::Rescale => {
                let prime = params.prime_inverses(self.input.level())[index].value;
                let negated = m.shoup(m.neg(m.mul(inverse, prime)));
                poly::sub_scale_assign(remainder, sum, &negated, m);
            }
        }
    }
}

/// Runs `work` on the digits modulo each prime and the limbs of two polynomials, on other threads
/// as well where there are any.
fn each_row(
    rows: Vec<Row<'_>>,
    [first, second]: [&mut Buffer; 2],
    degree: usize,
    work: impl Fn(usize, Row<'_>, [&mut [u64]; 2]) + Send + Sync,
) {
    if current_num_threads() > 1 {
        let limbs = first.par_chunks_exact_mut(degree).zip(second.par_chunks_exact_mut(degree));
        let rows = rows.into_par_iter().zip(limbs).enumerate();
        rows.for_each(|(index, (row, (first, second)))| work(index, row, [first, second]));
    } else {
        let limbs = first.chunks_exact_mut(degree).zip(second.chunks_exact_mut(degree));
        let rows = rows.into_iter().zip(limbs).enumerate();
        rows.for_each(|(index, (row, (first, second)))| work(index, row, [first, second]));
    }
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
    let last: Vec<Buffer> = last.collect();
    let mut out: Vec<Poly<Ntt>> = parts.iter().map(|_| Poly::scratch(params, level - 1)).collect();
    // Prime by prime: all parts share the roots of its transform, which at degree 2^15 are as large
    // as two limbs.
    let mut rows: Vec<Vec<&mut [u64]>> = (0..level).map(|_| Vec::new()).collect();
    for poly in &mut out {
        let limbs = poly.residues_mut().chunks_exact_mut(params.degree());
        rows.iter_mut().zip(limbs).for_each(|(row, limb)| row.push(limb));
    }
    let divide = |(index, row): (usize, Vec<&mut [u64]>)| {
        let table = params.table(index);
        let m = table.modulus();
        // (x - r) / q as (r - x) (-1/q), which leaves the input where it is.
        let negated = m.shoup(m.neg(params.prime_inverses(level)[index].value));
        for ((limb, part), last) in row.into_iter().zip(parts).zip(&last) {
            convert::recentre_to(limb, last, params.prime(level), m);
            table.forward(limb);
            poly::sub_scale_assign(limb, part.limb(index), &negated, m);
        }
    };
    if current_num_threads() > 1 {
        rows.into_par_iter().enumerate().for_each(divide);
    } else {
        rows.into_iter().enumerate().for_each(divide);
    }
    out
}
