//! The two sums of a key switch over its digits, and permutations of values, eight words at a time.

use core::arch::x86_64::*;
use core::array;

use super::ifma_butterflies::{LANES, load_values, store_values};
use super::lazy_reduction::{FEW, LazyReduction};
use crate::backend::portable;
use crate::modulus::KERNEL_BITS;
use crate::modulus::Modulus;

/// Vectors that go through the terms together, as in `dot`.
const VECTORS: usize = 4;
/// Their coefficients.
type Group = [u64; VECTORS * LANES];

/// Where the eight places of a vector come from, all of them in one aligned block: an automorphism
/// moves the values in bit-reversed order so. One load and one shuffle then do what eight loads
/// would.
#[derive(Clone, Copy)]
struct Place {
    block: usize,
    lanes: __m512i,
}

impl Place {
    /// `None` when the places are scattered or the block is not whole.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(perm: &[u32; LANES], len: usize) -> Option<Self> {
        let block = perm[0] as usize / LANES * LANES;
        if block + LANES > len {
            return None;
        }
        // SAFETY: the reference covers eight readable words of four bytes.
        let lanes = _mm512_cvtepu32_epi64(unsafe { _mm256_loadu_si256(perm.as_ptr().cast()) });
        let distance = _mm512_xor_si512(lanes, _mm512_set1_epi64(block as i64));
        let near = _mm512_cmplt_epu64_mask(distance, _mm512_set1_epi64(LANES as i64));
        (near == 0xff).then_some(Place { block, lanes })
    }

    /// The eight places from `at` on, in order; to be read without a shuffle.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn straight(at: usize) -> Self {
        Place { block: at, lanes: _mm512_setzero_si512() }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn read<const PERMUTED: bool>(self, a: &[u64]) -> __m512i {
        let block = load_values(&a[self.block..self.block + LANES].as_chunks::<LANES>().0[0]);
        // The shuffle looks at three bits of a place only: those inside the block.
        if PERMUTED { _mm512_permutexvar_epi64(self.lanes, block) } else { block }
    }
}

#[target_feature(enable = "avx512f")]
pub(crate) fn permute(out: &mut [u64], a: &[u64], perm: &[u32]) {
    let ((whole, rest), (perm, last)) = (out.as_chunks_mut::<LANES>(), perm.as_chunks::<LANES>());
    for (out, perm) in whole.iter_mut().zip(perm) {
        match Place::new(perm, a.len()) {
            Some(place) => store_values(out, place.read::<true>(a)),
            None => portable::switch::permute(out, a, perm),
        }
    }
    portable::switch::permute(rest, a, last);
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) fn dot_pair(
    out0: &mut [u64],
    out1: &mut [u64],
    digits: &[&[u64]],
    keys0: &[&[u64]],
    keys1: &[&[u64]],
    m: &Modulus,
) {
    if m.value() >> KERNEL_BITS != 0 {
        return portable::switch::dot_pair(out0, out1, digits, keys0, keys1, m);
    }
    let lazy = LazyReduction::new(m);
    let (groups0, rest0) = out0.as_chunks_mut::<{ VECTORS * LANES }>();
    let (groups1, rest1) = out1.as_chunks_mut::<{ VECTORS * LANES }>();
    let whole = groups0.len() * VECTORS * LANES;
    for (i, (out0, out1)) in groups0.iter_mut().zip(groups1).enumerate() {
        let at = i * VECTORS * LANES;
        let places = array::from_fn(|i| Place::straight(at + i * LANES));
        pair::<false>(&lazy, (out0, out1), digits, (keys0, keys1), at, &places);
    }
    let place = |i| whole + i;
    portable::switch::dot_pair_from(whole, (rest0, rest1), digits, (keys0, keys1), place, m);
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) fn dot_pair_permuted(
    out0: &mut [u64],
    out1: &mut [u64],
    digits: &[&[u64]],
    keys0: &[&[u64]],
    keys1: &[&[u64]],
    perm: &[u32],
    m: &Modulus,
) {
    if m.value() >> KERNEL_BITS != 0 {
        return portable::switch::dot_pair_permuted(out0, out1, digits, keys0, keys1, perm, m);
    }
    let lazy = LazyReduction::new(m);
    let keys = (keys0, keys1);
    let degree = out0.len();
    let (groups0, rest0) = out0.as_chunks_mut::<{ VECTORS * LANES }>();
    let (groups1, rest1) = out1.as_chunks_mut::<{ VECTORS * LANES }>();
    let vectors = perm.as_chunks::<LANES>().0;
    let whole = groups0.len() * VECTORS * LANES;
    let groups = groups0.iter_mut().zip(groups1).zip(vectors.as_chunks::<VECTORS>().0);
    for (i, ((out0, out1), perm)) in groups.enumerate() {
        let at = i * VECTORS * LANES;
        let places = perm.each_ref().map(|perm| Place::new(perm, degree));
        if let [Some(a), Some(b), Some(c), Some(d)] = places {
            pair::<true>(&lazy, (out0, out1), digits, keys, at, &[a, b, c, d]);
        } else {
            let place = |i| perm.as_flattened()[i] as usize;
            portable::switch::dot_pair_from(at, (out0, out1), digits, keys, place, m);
        }
    }
    let place = |i| perm[whole + i] as usize;
    portable::switch::dot_pair_from(whole, (rest0, rest1), digits, keys, place, m);
}

/// Both sums for the vectors from coefficient `at` on; the digits are shuffled only if `PERMUTED`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn pair<const PERMUTED: bool>(
    lazy: &LazyReduction,
    (out0, out1): (&mut Group, &mut Group),
    digits: &[&[u64]],
    (keys0, keys1): (&[&[u64]], &[&[u64]]),
    at: usize,
    places: &[Place; VECTORS],
) {
    let zero = _mm512_setzero_si512();
    let (mut sum0, mut sum1) = ([zero; VECTORS], [zero; VECTORS]);
    for ((digits, keys0), keys1) in
        digits.chunks(FEW - 1).zip(keys0.chunks(FEW - 1)).zip(keys1.chunks(FEW - 1))
    {
        // What earlier terms left is a residue: it enters as one more low half.
        let (mut high0, mut high1) = ([zero; VECTORS], [zero; VECTORS]);
        for ((digit, key0), key1) in digits.iter().zip(keys0).zip(keys1) {
            let key0 = key0[at..at + VECTORS * LANES].as_chunks::<LANES>().0;
            let key1 = key1[at..at + VECTORS * LANES].as_chunks::<LANES>().0;
            for i in 0..VECTORS {
                let x = places[i].read::<PERMUTED>(digit);
                let (y0, y1) = (load_values(&key0[i]), load_values(&key1[i]));
                sum0[i] = _mm512_madd52lo_epu64(sum0[i], x, y0);
                high0[i] = _mm512_madd52hi_epu64(high0[i], x, y0);
                sum1[i] = _mm512_madd52lo_epu64(sum1[i], x, y1);
                high1[i] = _mm512_madd52hi_epu64(high1[i], x, y1);
            }
        }
        for i in 0..VECTORS {
            sum0[i] = lazy.residue_of_few(sum0[i], high0[i]);
            sum1[i] = lazy.residue_of_few(sum1[i], high1[i]);
        }
    }
    for (i, (out0, out1)) in
        out0.as_chunks_mut::<LANES>().0.iter_mut().zip(out1.as_chunks_mut::<LANES>().0).enumerate()
    {
        store_values(out0, sum0[i]);
        store_values(out1, sum1[i]);
    }
}
