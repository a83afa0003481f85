//! RNS polynomial: residues modulo each prime of a chain; its type says whether they are values or
//! coefficients.

use super::buffer_pool::Buffer;
use super::params::Params;
use ciphervec_arith::parallel::*;
use ciphervec_arith::{Modulus, NttTable, poly};
use core::marker::PhantomData;
use std::sync::Arc;

/// Values at the roots of unity, in the order of [`ciphervec_arith::ntt`].
#[derive(Clone, Copy, Debug)]
pub struct Ntt;

/// Coefficients.
#[derive(Clone, Copy, Debug)]
pub struct Coefficient;

/// A polynomial modulo q_0 … q_level: one limb of N residues for each prime, one after the other.
pub struct Poly<F> {
    params: Arc<Params>,
    level: usize,
    words: Buffer,
    form: PhantomData<F>,
}

/// Runs `work` on pieces of `data`, on other threads as well where there are any.
pub fn each(data: &mut [u64], length: usize, work: impl Fn(usize, &mut [u64]) + Send + Sync) {
    if current_num_threads() > 1 {
        data.par_chunks_exact_mut(length).enumerate().for_each(|(i, piece)| work(i, piece));
    } else {
        data.chunks_exact_mut(length).enumerate().for_each(|(i, piece)| work(i, piece));
    }
}

/// [`each`] on pieces of two buffers side by side.
pub(super) fn each_pair(
    first: &mut [u64],
    second: &mut [u64],
    length: usize,
    work: impl Fn(usize, &mut [u64], &mut [u64]) + Send + Sync,
) {
    if current_num_threads() > 1 {
        let pieces = first.par_chunks_exact_mut(length).zip(second.par_chunks_exact_mut(length));
        pieces.enumerate().for_each(|(i, (a, b))| work(i, a, b));
    } else {
        let pieces = first.chunks_exact_mut(length).zip(second.chunks_exact_mut(length));
        pieces.enumerate().for_each(|(i, (a, b))| work(i, a, b));
    }
}

impl<F: Sync> Poly<F> {
    /// The zero polynomial.
    pub fn zero(params: &Arc<Params>, level: usize) -> Self {
        let words = params.pool.zeroed((level + 1) * params.degree());
        Poly { params: params.clone(), level, words, form: PhantomData }
    }

    /// A polynomial of whatever residues its buffer held last, to be overwritten whole.
    pub(super) fn scratch(params: &Arc<Params>, level: usize) -> Self {
        let words = params.pool.take((level + 1) * params.degree());
        Poly { params: params.clone(), level, words, form: PhantomData }
    }

    /// The polynomial whose limbs `work` writes, all of each. Hidden: secret keys encrypt and decrypt with it.
    #[doc(hidden)]
    pub fn filled(
        params: &Arc<Params>,
        level: usize,
        work: impl Fn(usize, &NttTable, &mut [u64]) + Send + Sync,
    ) -> Self {
        let mut poly = Self::scratch(params, level);
        poly.for_limbs(work);
        poly
    }

    /// No limbs: what is left where a polynomial was taken away.
    pub(super) fn empty(params: &Arc<Params>) -> Self {
        Poly { params: params.clone(), level: 0, words: params.pool.take(0), form: PhantomData }
    }

    /// The first limbs of a buffer, up to those of `level`.
    pub(super) fn from_words(params: &Arc<Params>, level: usize, mut words: Buffer) -> Self {
        words.truncate((level + 1) * params.degree());
        Poly { params: params.clone(), level, words, form: PhantomData }
    }

    /// The same under other parameters of the same identity, whose pool what is computed from it comes
    /// from.
    pub(super) fn under(self, params: &Arc<Params>) -> Self {
        debug_assert!(self.params == *params);
        Poly { params: params.clone(), ..self }
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// The level: one less than the number of limbs.
    pub fn level(&self) -> usize {
        self.level
    }

    /// The residues modulo q_`index`.
    ///
    /// # Panics
    /// Above the level.
    pub fn limb(&self, index: usize) -> &[u64] {
        &self.words[index * self.params.degree()..][..self.params.degree()]
    }

    /// The residues modulo q_`index`, to write: below the prime.
    ///
    /// # Panics
    /// Above the level.
    pub fn limb_mut(&mut self, index: usize) -> &mut [u64] {
        let degree = self.params.degree();
        &mut self.words[index * degree..][..degree]
    }

    /// All limbs in order.
    pub fn limbs(&self) -> impl Iterator<Item = &[u64]> {
        self.words.chunks_exact(self.params.degree())
    }

    /// All residues, limb after limb.
    pub fn residues(&self) -> &[u64] {
        &self.words
    }

    /// All residues, to write.
    pub(super) fn residues_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Runs `work` on every limb with its transform.
    pub(super) fn for_limbs(&mut self, work: impl Fn(usize, &NttTable, &mut [u64]) + Send + Sync) {
        let params = self.params.clone();
        each(&mut self.words, params.degree(), |i, limb| work(i, params.table(i), limb));
    }

    /// Runs `work` on every limb beside that of `other`, which may have more.
    fn zip(&mut self, other: &Self, work: impl Fn(&mut [u64], &[u64], &Modulus) + Send + Sync) {
        self.for_limbs(|i, table, limb| work(limb, other.limb(i), table.modulus()));
    }

    /// `self += other`, whose level is at least as high.
    pub fn add_assign(&mut self, other: &Self) {
        self.zip(other, poly::add_assign);
    }

    /// `self -= other`, whose level is at least as high.
    pub fn sub_assign(&mut self, other: &Self) {
        self.zip(other, poly::sub_assign);
    }

    /// `self = -self`.
    pub fn negate(&mut self) {
        self.for_limbs(|_, table, limb| poly::neg_assign(limb, table.modulus()));
    }

    /// Multiplies limb i by `factor(i)`, any word.
    pub(super) fn scale_limbs(&mut self, factor: impl Fn(&Modulus) -> u64 + Send + Sync) {
        self.for_limbs(|_, table, limb| {
            poly::scalar_mul_assign(limb, factor(table.modulus()), table.modulus());
        });
    }

    /// The same residues without the limbs above `level`.
    pub(super) fn at_level(&self, level: usize) -> Self {
        let mut out = Self::scratch(&self.params, level);
        let length = out.words.len();
        out.words.copy_from_slice(&self.words[..length]);
        out
    }

    fn into_form<G>(self) -> Poly<G> {
        Poly { params: self.params, level: self.level, words: self.words, form: PhantomData }
    }
}

impl Poly<Ntt> {
    /// `self *= other`, whose level is at least as high.
    pub fn mul_assign(&mut self, other: &Self) {
        self.zip(other, poly::mul_assign);
    }

    /// `self += a b`, whose levels are at least as high.
    pub fn mul_add_assign(&mut self, a: &Self, b: &Self) {
        self.for_limbs(|i, table, limb| {
            poly::mul_add_assign(limb, a.limb(i), b.limb(i), table.modulus());
        });
    }

    /// The product of two polynomials at the lower of their levels.
    pub(super) fn product(a: &Self, b: &Self) -> Self {
        let mut out = Self::scratch(&a.params, a.level.min(b.level));
        out.for_limbs(|i, table, limb| poly::mul(limb, a.limb(i), b.limb(i), table.modulus()));
        out
    }

    /// a_0 b_0 + a_1 b_1 at the lowest of their levels.
    pub(super) fn dot(a: [&Self; 2], b: [&Self; 2]) -> Self {
        let level = a.iter().chain(&b).map(|poly| poly.level).min().unwrap_or(0);
        let mut out = Self::scratch(&a[0].params, level);
        out.for_limbs(|i, table, limb| {
            let [a, b] = [a, b].map(|pair| pair.map(|poly| poly.limb(i)));
            poly::dot(limb, &a, &b, table.modulus());
        });
        out
    }

    /// A copy in coefficient form, limb by limb, so that each is transformed while it is in the
    /// cache.
    pub(super) fn coefficients(&self) -> Poly<Coefficient> {
        let mut out = Self::scratch(&self.params, self.level);
        out.for_limbs(|i, table, limb| {
            limb.copy_from_slice(self.limb(i));
            table.inverse(limb);
        });
        out.into_form()
    }

    /// The coefficients.
    pub fn into_coefficients(mut self) -> Poly<Coefficient> {
        self.for_limbs(|_, table, limb| table.inverse(limb));
        self.into_form()
    }
}

impl Poly<Coefficient> {
    /// The values.
    pub fn into_ntt(mut self) -> Poly<Ntt> {
        self.for_limbs(|_, table, limb| table.forward(limb));
        self.into_form()
    }
}

impl<F> Clone for Poly<F> {
    fn clone(&self) -> Self {
        Poly {
            params: self.params.clone(),
            level: self.level,
            words: self.words.clone(),
            form: PhantomData,
        }
    }
}

impl<F> PartialEq for Poly<F> {
    fn eq(&self, other: &Self) -> bool {
        self.params == other.params && self.words[..] == other.words[..]
    }
}

impl<F> Eq for Poly<F> {}

impl<F> core::fmt::Debug for Poly<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Poly").field("level", &self.level).finish_non_exhaustive()
    }
}
