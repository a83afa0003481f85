//! Key-switching key from one secret to another. Public.
//!
//! Digit i of the key is (b_i, a_i) modulo Q P with b_i = −a_i s + e_i + P g_i s', where g_i is 1
//! modulo the primes of the digit and 0 modulo the others: then Σ_i [c]_i (b_i + a_i s) ≈ P c s'
//! for the digits [c]_i of any c (docs/ckks.md, section 4). A key for a level holds the limbs of
//! that level and the special ones; it serves all levels below.

use super::super::buffer_pool::{self, Buffer, BufferPool};
use super::super::params::Params;
use super::super::poly::{each, each_pair};
use super::super::serialize::{limb_bytes, pack_limb, unpack_limb};
use crate::error::Result;
use crate::wire::Reader;
use ciphervec_arith::NttTable;
use ciphervec_arith::sample::Stream;

/// Both components of every digit.
pub struct KeySwitchKey {
    level: usize,
    seed: [u8; 32],
    /// b_i and a_i, the limbs of the level and then the special ones.
    digits: Vec<[Buffer; 2]>,
}

/// The place of limb `index` of a key for `level` among all primes.
fn prime_index(params: &Params, level: usize, index: usize) -> usize {
    if index <= level { index } else { index - level - 1 + params.spec().primes() }
}

/// The transforms of the limbs of a key.
fn tables(params: &Params, level: usize) -> impl Iterator<Item = &NttTable> {
    params.tables()[..=level].iter().chain(params.special_tables())
}

/// The stream of a key's seed for one digit and one prime: the same at every level.
fn stream(digit: usize, prime: usize) -> u64 {
    (digit as u64) << 32 | prime as u64
}

impl KeySwitchKey {
    /// The highest level it serves.
    pub fn level(&self) -> usize {
        self.level
    }

    /// b and a of `digit`, modulo the prime that limb `index` of a key for `level` would have.
    pub fn limbs(&self, params: &Params, level: usize, digit: usize, index: usize) -> [&[u64]; 2] {
        let index = if index <= level { index } else { index + self.level - level };
        let degree = params.degree();
        let [b, a] = &self.digits[digit];
        [&b[index * degree..][..degree], &a[index * degree..][..degree]]
    }

    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        self.digits.iter().flatten().map(|words| words.len() * 8).sum()
    }

    /// Bytes in memory of a key for `level`.
    pub fn memory_at(params: &Params, level: usize) -> usize {
        let words = tables(params, level).count() * params.degree();
        params.digits(level) * 2 * buffer_pool::bytes(words)
    }

    /// Bytes of a serialised key for `level`.
    pub fn bytes_at(params: &Params, level: usize) -> usize {
        let limbs: usize = tables(params, level).map(|table| limb_bytes(params, table)).sum();
        32 + params.digits(level) * limbs
    }

    /// The key of `seed`. Of a digit `fill` gives what writes the limbs of b from those of a: it is told
    /// the place of a limb in the key, and that of its prime among all.
    pub fn masked<F>(
        params: &Params,
        level: usize,
        seed: [u8; 32],
        fill: impl Fn(usize) -> F,
    ) -> Self
    where
        F: Fn(usize, usize, &mut [u64], &[u64]) + Send + Sync,
    {
        let digits = (0..params.digits(level)).map(|digit| {
            let mut a = Self::expand(params, level, &seed, digit);
            let mut b = BufferPool::keep(a.len());
            let write = fill(digit);
            each_pair(&mut b, &mut a, params.degree(), |index, b, a| {
                write(index, prime_index(params, level, index), b, a);
            });
            [b, a]
        });
        KeySwitchKey { level, seed, digits: digits.collect() }
    }

    /// a of one digit: public and uniform, so its seed stands for it.
    fn expand(params: &Params, level: usize, seed: &[u8; 32], digit: usize) -> Buffer {
        let degree = params.degree();
        let mut a = BufferPool::keep((level + 1 + params.special_tables().len()) * degree);
        each(&mut a, degree, |index, limb| {
            let prime = prime_index(params, level, index);
            let m = params.tables()[prime].modulus();
            Stream::new(seed, stream(digit, prime)).uniform(m, limb);
        });
        a
    }

    /// The seed of a and all of b.
    pub fn append(&self, params: &Params, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.seed);
        for [b, _] in &self.digits {
            let limbs = b.chunks_exact(params.degree());
            tables(params, self.level)
                .zip(limbs)
                .for_each(|(table, limb)| pack_limb(limb, table.modulus(), out));
        }
    }

    /// Reads what [`Self::append`] wrote.
    ///
    /// # Errors
    /// Too few bytes, or a residue that is not below its prime.
    pub fn read(params: &Params, level: usize, reader: &mut Reader<'_>) -> Result<Self> {
        let seed = reader.array()?;
        let mut digits = Vec::with_capacity(params.digits(level));
        for digit in 0..params.digits(level) {
            let limbs = level + 1 + params.special_tables().len();
            let mut b = BufferPool::keep(limbs * params.degree());
            for (table, limb) in tables(params, level).zip(b.chunks_exact_mut(params.degree())) {
                unpack_limb(reader, table.modulus(), limb)?;
            }
            digits.push([b, Self::expand(params, level, &seed, digit)]);
        }
        Ok(KeySwitchKey { level, seed, digits })
    }
}
