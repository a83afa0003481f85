//! Ring scan: packed 50-bit residues and queries enter, every block's sums leave, by 25-bit halves.

use core::arch::x86_64::*;

use crate::backend::operands::layout::{GROUP, STRIP, STRIP_BYTES};
use crate::backend::portable;
use crate::modulus::Modulus;

pub(crate) use crate::backend::portable::ring::pack50;

/// Vectors of four residues in a strip.
const VECTORS: usize = STRIP / 4;

/// Four residues from the 25 bytes at `25 j`: each 16-byte half holds two of them; see the AVX-512
/// form for the shifts.
#[inline]
#[target_feature(enable = "avx2")]
fn unpack(strip: &[u8; STRIP_BYTES], j: usize) -> __m256i {
    // The upper half of the last vector would end 3 bytes after the strip, so it starts 3 bytes
    // early.
    let early = if j + 1 == VECTORS { 3 } else { 0 };
    let start = 25 * j;
    let (low, high) = (&strip[start..start + 16], &strip[start + 12 - early..start + 28 - early]);
    // SAFETY: both slices are 16 readable bytes.
    let raw = unsafe { _mm256_loadu2_m128i(high.as_ptr().cast(), low.as_ptr().cast()) };
    let (e, p) = (early as i8, |x: usize| if x < 16 { x as i8 } else { -1 });
    let index = _mm256_setr_epi8(
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        6,
        7,
        8,
        9,
        10,
        11,
        12,
        13,
        e,
        e + 1,
        e + 2,
        e + 3,
        e + 4,
        e + 5,
        e + 6,
        e + 7,
        e + 6,
        e + 7,
        e + 8,
        e + 9,
        e + 10,
        e + 11,
        e + 12,
        p(early + 13),
    );
    let lanes = _mm256_srlv_epi64(_mm256_shuffle_epi8(raw, index), _mm256_setr_epi64x(0, 2, 4, 6));
    _mm256_and_si256(lanes, _mm256_set1_epi64x((1 << 50) - 1))
}

#[target_feature(enable = "avx2")]
pub(crate) fn unpack50(bytes: &[u8], out: &mut [u64]) {
    let (strips, rest) = bytes.as_chunks::<STRIP_BYTES>();
    let (rows, tail) = out.as_chunks_mut::<STRIP>();
    for (strip, row) in strips.iter().zip(rows) {
        for (j, words) in row.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            // SAFETY: the reference covers 32 writable bytes.
            unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), unpack(strip, j)) };
        }
    }
    portable::ring::unpack50(rest, tail);
}

/// Sums of `d0 w0`, `d0 w1 + d1 w0` and `d1 w1` for `d = d0 + 2^25 d1`. The middle products are
/// below `2^51`, so `2^12` of them stay below `2^63`.
#[derive(Clone, Copy)]
struct Sums {
    low: __m256i,
    middle: __m256i,
    high: __m256i,
}

impl Sums {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new() -> Self {
        let zero = _mm256_setzero_si256();
        Sums { low: zero, middle: zero, high: zero }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn accumulate(&mut self, (d0, d1): (__m256i, __m256i), (w0, w1): (__m256i, __m256i)) {
        let cross = _mm256_add_epi64(_mm256_mul_epu32(d0, w1), _mm256_mul_epu32(d1, w0));
        self.low = _mm256_add_epi64(self.low, _mm256_mul_epu32(d0, w0));
        self.middle = _mm256_add_epi64(self.middle, cross);
        self.high = _mm256_add_epi64(self.high, _mm256_mul_epu32(d1, w1));
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(&self, m: &Modulus, out: &mut [u64]) {
        let mut words = [[0u64; 4]; 3];
        for (words, sum) in words.iter_mut().zip([self.low, self.middle, self.high]) {
            // SAFETY: the reference covers 32 writable bytes.
            unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), sum) };
        }
        for (i, x) in out.iter_mut().enumerate() {
            let [low, middle, high] = [0, 1, 2].map(|k| u128::from(words[k][i]));
            *x = m.reduce_u128(low + (middle << 25) + (high << 50));
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn halves(x: __m256i) -> (__m256i, __m256i) {
    (_mm256_and_si256(x, _mm256_set1_epi64x((1 << 25) - 1)), _mm256_srli_epi64::<25>(x))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(words: &[u64]) -> __m256i {
    let words = &words[..4];
    // SAFETY: the slice is four readable words.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// All queries over a group of blocks before the next, four coefficients of one block at a time:
/// the group's strips stay in cache for all those rounds.
#[target_feature(enable = "avx2")]
pub(crate) fn scan(
    data: &[u8],
    nodes: usize,
    queries: &[&[u64]],
    m: &Modulus,
    u: &mut [u64],
    v: &mut [u64],
) {
    let strips = data.as_chunks::<STRIP_BYTES>().0;
    let blocks = strips.len() / nodes.max(1);
    for (index, group) in strips.chunks((GROUP * nodes).max(1)).enumerate() {
        let width = group.len() / nodes;
        for (k, query) in queries.iter().enumerate() {
            let query = query.as_chunks::<{ 2 * STRIP }>().0;
            for block in 0..width {
                let at = (k * blocks + index * GROUP + block) * STRIP;
                for j in 0..VECTORS {
                    let (mut sum_u, mut sum_v) = (Sums::new(), Sums::new());
                    for (strips, q) in group.chunks_exact(width).zip(query) {
                        let d = halves(unpack(&strips[block], j));
                        sum_u.accumulate(d, halves(load(&q[4 * j..4 * j + 4])));
                        sum_v.accumulate(d, halves(load(&q[STRIP + 4 * j..STRIP + 4 * j + 4])));
                    }
                    sum_u.store(m, &mut u[at + 4 * j..at + 4 * j + 4]);
                    sum_v.store(m, &mut v[at + 4 * j..at + 4 * j + 4]);
                }
            }
        }
    }
}
