//! Key switch: both sums from one read of the digits, by products with quotients of doubles.

use super::poly::{TERMS, TILE, prime};
use super::residue::{read, write};
use crate::backend::portable::switch;
use crate::modulus::Modulus;

pub(crate) use crate::backend::portable::switch::permute;

pub(crate) fn dot_pair(
    out0: &mut [u64],
    out1: &mut [u64],
    digits: &[&[u64]],
    keys0: &[&[u64]],
    keys1: &[&[u64]],
    m: &Modulus,
) {
    pairs((out0, out1), digits, (keys0, keys1), |i| i, m);
}

pub(crate) fn dot_pair_permuted(
    out0: &mut [u64],
    out1: &mut [u64],
    digits: &[&[u64]],
    keys0: &[&[u64]],
    keys1: &[&[u64]],
    perm: &[u32],
    m: &Modulus,
) {
    pairs((out0, out1), digits, (keys0, keys1), |i| perm[i] as usize, m);
}

/// Both sums, the digits read where `place` says.
#[inline(always)]
fn pairs(
    (out0, out1): (&mut [u64], &mut [u64]),
    digits: &[&[u64]],
    (keys0, keys1): (&[&[u64]], &[&[u64]]),
    place: impl Fn(usize) -> usize,
    m: &Modulus,
) {
    let Some(p) = prime(m).filter(|_| digits.len() <= TERMS) else {
        return switch::dot_pair_from(0, (out0, out1), digits, (keys0, keys1), place, m);
    };
    for (tile, (out0, out1)) in out0.chunks_mut(TILE).zip(out1.chunks_mut(TILE)).enumerate() {
        let start = tile * TILE;
        let mut sums = [(0, 0); TILE];
        for ((digits, key0), key1) in digits.iter().zip(keys0).zip(keys1) {
            let keys = key0[start..].iter().zip(&key1[start..]);
            for ((i, (k0, k1)), (sum0, sum1)) in keys.take(out0.len()).enumerate().zip(&mut sums) {
                let d = read(&digits[place(start + i)]);
                write(sum0, read(sum0) + p.product(d, read(k0)));
                write(sum1, read(sum1) + p.product(d, read(k1)));
            }
        }
        for ((z0, z1), (sum0, sum1)) in out0.iter_mut().zip(out1).zip(&sums) {
            write(z0, p.canonical(p.reduce(read(sum0))));
            write(z1, p.canonical(p.reduce(read(sum1))));
        }
    }
}
