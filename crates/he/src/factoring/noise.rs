//! Fresh encryptions of zero.
//!
//! Three ways, all `n^s`-th residues modulo `n^(s+1)` for Damgård–Jurik (Paillier is `s = 1`), and
//! the second one without that power for Okamoto–Uchiyama: uniform (`r^(n^s)` for a uniform `r`),
//! and powers of one public base by a random exponent, from a table.

use super::Group;
use crate::error::Result;
use crate::primes;
use ciphervec_arith::montgomery::{Comb, Residues};
use crypto_bigint::BoxedUint;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// How noise is drawn.
pub(crate) enum Source {
    /// `r^e` for a uniform `r` below `n`, by the words of `e`.
    Uniform(Vec<u64>),
    /// `(root^lift)^r` for an `r` of so many bits.
    Powers { root: Residues, lift: Vec<u64>, exponent_bits: u32, table: OnceLock<Comb> },
}

impl Source {
    /// Powers of `root^lift`; the table is made when it is first needed.
    pub(crate) fn powers(root: Residues, lift: Vec<u64>, exponent_bits: u32) -> Self {
        Source::Powers { root, lift, exponent_bits, table: OnceLock::new() }
    }

    /// Fresh noise for a table.
    pub(crate) fn draw(&self, group: &Group, rows: usize, columns: usize) -> Result<Residues> {
        match self {
            Source::Uniform(exponent) => {
                let roots = uniform(&group.n, rows * columns, group.modulus.element_words())?;
                Ok(Residues::from_digits(&group.modulus, rows, columns, &roots)?.pow(exponent))
            }
            Source::Powers { root, lift, exponent_bits, table } => {
                let exponents = random_exponents(rows * columns, *exponent_bits)?;
                let table = table.get_or_init(|| Comb::new(&root.pow(lift), *exponent_bits));
                Ok(table.pow(rows, columns, &exponents))
            }
        }
    }
}

/// `count` uniform numbers in `1..bound`, each in the lowest of `stride` words.
pub fn uniform(bound: &BoxedUint, count: usize, stride: usize) -> Result<Zeroizing<Vec<u64>>> {
    let mut out = Zeroizing::new(vec![0; count * stride]);
    for place in out.chunks_exact_mut(stride) {
        let value = Zeroizing::new(primes::random_below(bound)?);
        let words = value.as_words();
        place[..words.len()].copy_from_slice(words);
    }
    Ok(out)
}

/// `count` uniform exponents below `2^bits`, in whole words each.
pub(crate) fn random_exponents(count: usize, bits: u32) -> Result<Zeroizing<Vec<u64>>> {
    let words = bits.div_ceil(64) as usize;
    let mut bytes = Zeroizing::new(vec![0; 8 * words * count]);
    crate::random::fill(&mut bytes)?;
    let mut out = Zeroizing::new(vec![0u64; words * count]);
    let mask = u64::MAX >> (64 * words as u32 - bits);
    for (at, (word, bytes)) in out.iter_mut().zip(bytes.as_chunks::<8>().0).enumerate() {
        let top = (at + 1) % words == 0;
        *word = u64::from_le_bytes(*bytes) & if top { mask } else { u64::MAX };
    }
    Ok(out)
}
