//! The two sums of a key switch over its digits, and permutations of values, one word at a time.

use crate::modulus::Modulus;

pub(crate) fn permute(out: &mut [u64], a: &[u64], perm: &[u32]) {
    for (z, &i) in out.iter_mut().zip(perm) {
        *z = a[i as usize];
    }
}

pub(crate) fn dot_pair(
    out0: &mut [u64],
    out1: &mut [u64],
    digits: &[&[u64]],
    keys0: &[&[u64]],
    keys1: &[&[u64]],
    m: &Modulus,
) {
    dot_pair_from(0, (out0, out1), digits, (keys0, keys1), |i| i, m);
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
    dot_pair_from(0, (out0, out1), digits, (keys0, keys1), |i| perm[i] as usize, m);
}

/// Both sums for the coefficients from `start` on that the outputs have room for. `place` says
/// where in the digits the `i`-th of them is read.
#[inline(always)]
pub(crate) fn dot_pair_from(
    start: usize,
    (out0, out1): (&mut [u64], &mut [u64]),
    digits: &[&[u64]],
    (keys0, keys1): (&[&[u64]], &[&[u64]]),
    place: impl Fn(usize) -> usize,
    m: &Modulus,
) {
    for (i, (z0, z1)) in out0.iter_mut().zip(out1).enumerate() {
        let (from, at) = (place(i), start + i);
        (*z0, *z1) = (0, 0);
        // Fifteen products below 2^124 add up to less than 2^128.
        for ((d, k0), k1) in digits.chunks(15).zip(keys0.chunks(15)).zip(keys1.chunks(15)) {
            let (mut sum0, mut sum1) = (0u128, 0u128);
            for ((d, k0), k1) in d.iter().zip(k0).zip(k1) {
                sum0 += u128::from(d[from]) * u128::from(k0[at]);
                sum1 += u128::from(d[from]) * u128::from(k1[at]);
            }
            (*z0, *z1) = (m.add(*z0, m.reduce_u128(sum0)), m.add(*z1, m.reduce_u128(sum1)));
        }
    }
}
