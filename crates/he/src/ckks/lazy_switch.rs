//! Lazy key switching: rotations of a ciphertext modulo Q P, summed before they are divided by P.
//! Server only.
//!
//! A key switch ends with a division by P. Of a sum of rotations times plaintexts the sum can be
//! divided in place of its terms (Bossuat, Mouchet, Troncoso-Pastoriza & Hubaux, IACR ePrint
//! 2020/1203): what it costs is that plaintexts are needed modulo the special primes as well.

use super::buffer_pool::Buffer;
use super::ciphertext::Ciphertext;
use super::evaluate::halves;
use super::key_switch::{DecomposedPoly, dot, extend, table, transform, wide};
use super::keys::KeySwitchKey;
use super::params::Params;
use super::poly::{Ntt, Poly, each, each_pair};
use crate::error::Result;
use ciphervec_arith::poly;
use std::sync::Arc;

/// P times both parts of a ciphertext, modulo the primes of a level and the special ones.
pub(super) struct WidePair {
    params: Arc<Params>,
    level: usize,
    pub(super) parts: [Buffer; 2],
}

/// A ciphertext whose digits are at hand for any number of rotations modulo Q P.
pub(super) struct Hoisted<'a> {
    parts: [&'a Poly<Ntt>; 2],
    digits: DecomposedPoly,
}

impl<'a> Hoisted<'a> {
    /// Cuts c_1 of a ciphertext of degree 1 into digits.
    pub fn new(a: &'a Ciphertext) -> Result<Self> {
        let parts = halves(a)?;
        Ok(Hoisted { parts, digits: DecomposedPoly::new(parts[1]) })
    }

    /// The limbs that it has modulo Q P.
    pub fn limbs(&self) -> usize {
        wide(self.parts[0].params(), self.parts[0].level())
    }

    /// Limb `index` of P times the ciphertext itself; of the special primes there is nothing.
    pub fn itself(&self, index: usize, out: [&mut [u64]; 2]) {
        let (params, level) = (self.parts[0].params(), self.parts[0].level());
        for (out, part) in out.into_iter().zip(self.parts) {
            if index > level {
                out.fill(0);
                continue;
            }
            out.copy_from_slice(part.limb(index));
            poly::scalar_mul_assign(out, params.special_residue(index), params.prime(index));
        }
    }

    /// Limb `index` of P times what the automorphism of `key` makes of the ciphertext, which
    /// permutes values by `permutation`.
    pub fn rotated(
        &self,
        index: usize,
        key: &KeySwitchKey,
        permutation: &[u32],
        [first, second]: [&mut [u64]; 2],
    ) {
        let [constant, linear] = self.parts;
        let (params, level) = (constant.params(), constant.level());
        let degree = params.degree();
        let mut sums = params.pool.take(2 * degree);
        let (zeroth, other) = sums.split_at_mut(degree);
        let row = self.digits.row(index, params.digits(level) * degree);
        dot(linear, key, index, row, [&mut *zeroth, &mut *other]);
        if index <= level {
            first.copy_from_slice(constant.limb(index));
            let m = params.prime(index);
            poly::scalar_mul_assign(first, params.special_residue(index), m);
            poly::add_assign(zeroth, first, m);
        }
        poly::permute(first, zeroth, permutation);
        poly::permute(second, other, permutation);
    }
}

impl WidePair {
    /// Of whatever words the buffers held last, to be overwritten whole.
    pub fn scratch(params: &Arc<Params>, level: usize) -> Self {
        let words = wide(params, level) * params.degree();
        let parts = [(); 2].map(|()| params.pool.take(words));
        WidePair { params: params.clone(), level, parts }
    }

    /// The limbs of both parts, index by index.
    pub fn rows(&mut self) -> impl Iterator<Item = [&mut [u64]; 2]> {
        let degree = self.params.degree();
        let [first, second] = &mut self.parts;
        first.chunks_exact_mut(degree).zip(second.chunks_exact_mut(degree)).map(|(a, b)| [a, b])
    }

    /// What the automorphism of `key` makes of it: c_1 is divided by P and cut into digits, c_0
    /// stays as it is.
    pub fn rotated(&self, key: &KeySwitchKey, permutation: &[u32]) -> Self {
        let (params, level, degree) = (&self.params, self.level, self.params.degree());
        let linear = self.divided(1, false);
        let mut extended = extend(&linear);
        let mut out = Self::scratch(params, level);
        let length = params.digits(level) * degree;
        each(&mut extended, length, |index, limbs| transform(params, level, index, limbs));
        let [first, second] = &mut out.parts;
        each_pair(first, second, degree, |index, first, second| {
            let mut sums = params.pool.take(2 * degree);
            let (zeroth, other) = sums.split_at_mut(degree);
            let row = &extended[index * length..][..length];
            dot(&linear, key, index, row, [&mut *zeroth, &mut *other]);
            let m = table(params, level, index).modulus();
            poly::add_assign(zeroth, &self.parts[0][index * degree..][..degree], m);
            poly::permute(first, zeroth, permutation);
            poly::permute(second, other, permutation);
        });
        out
    }

    /// `self += other`, of the same level.
    pub fn add_assign(&mut self, other: &Self) {
        self.zip(other, poly::add_assign);
    }

    /// `self += self`.
    pub fn double(&mut self) {
        let (params, level, degree) = (self.params.clone(), self.level, self.params.degree());
        for part in &mut self.parts {
            each(part, degree, |index, limb| {
                poly::scalar_mul_assign(limb, 2, table(&params, level, index).modulus());
            });
        }
    }

    /// `self -= other`, of the same level.
    pub fn sub_assign(&mut self, other: &Self) {
        self.zip(other, poly::sub_assign);
    }

    fn zip(
        &mut self,
        other: &Self,
        work: impl Fn(&mut [u64], &[u64], &ciphervec_arith::Modulus) + Send + Sync,
    ) {
        let (params, level, degree) = (self.params.clone(), self.level, self.params.degree());
        for (mine, theirs) in self.parts.iter_mut().zip(&other.parts) {
            each(mine, degree, |index, limb| {
                let m = table(&params, level, index).modulus();
                work(limb, &theirs[index * degree..][..degree], m);
            });
        }
    }

    /// Times i in every slot: X^(N/2), which is a root of −1 in the first half of all values and
    /// its inverse in the second.
    pub fn multiply_by_i(&mut self) {
        let (params, level, degree) = (self.params.clone(), self.level, self.params.degree());
        for part in &mut self.parts {
            each(part, degree, |index, limb| {
                let table = table(&params, level, index);
                let m = table.modulus();
                let root = m.pow(table.root(), degree as u64 / 2);
                let (first, second) = limb.split_at_mut(degree / 2);
                poly::scalar_mul_assign(first, root, m);
                poly::scalar_mul_assign(second, m.neg(root), m);
            });
        }
    }

    /// Both parts divided by P, and rescaled too if asked for.
    pub fn divide(&self, rescale: bool) -> Vec<Poly<Ntt>> {
        (0..2).map(|part| self.divided(part, rescale)).collect()
    }

    /// (x − [x]_D)/D modulo every prime that is left, for D = P, or P q_level.
    fn divided(&self, part: usize, rescale: bool) -> Poly<Ntt> {
        let (params, level, degree) = (&self.params, self.level, self.params.degree());
        let words = &self.parts[part];
        let (kept, conversion) = if rescale {
            (level, params.mod_down_and_rescale(level))
        } else {
            (level + 1, params.mod_down(level))
        };
        let mut last = params.pool.take(words.len() - kept * degree);
        last.copy_from_slice(&words[kept * degree..]);
        each(&mut last, degree, |index, limb| table(params, level, kept + index).inverse(limb));
        let mut out = Poly::scratch(params, kept - 1);
        let sources: Vec<&[u64]> = last.chunks_exact(degree).collect();
        let mut targets: Vec<&mut [u64]> = out.residues_mut().chunks_exact_mut(degree).collect();
        conversion.convert(&sources, &mut targets);
        out.for_limbs(|index, table, limb| {
            let m = table.modulus();
            table.forward(limb);
            let mut inverse = params.special_inverses()[index].value;
            if rescale {
                inverse = m.mul(inverse, params.prime_inverses(level)[index].value);
            }
            // (x − r)/D as (r − x) (−1/D).
            let words = &words[index * degree..][..degree];
            poly::sub_scale_assign(limb, words, &m.shoup(m.neg(inverse)), m);
        });
        out
    }
}
