//! Word scan: a tile of `[dim][w]` words and queries enter, wrapping inner products leave, eight at
//! a time.

use core::arch::x86_64::*;

use crate::backend::operands::layout::TILE;
use crate::backend::portable;
use crate::backend::shared::matmul::{SLAB, blocked};

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference covers 32 readable bytes; the load has no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store<T>(to: &mut [T], x: __m256i) {
    assert!(size_of_val(to) >= 32);
    // SAFETY: the assertion saw 32 writable bytes.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), x) }
}

#[target_feature(enable = "avx2")]
pub(crate) fn tile_u32(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
    if w != TILE {
        return portable::matmul::tile_u32(tile, w, query, out);
    }
    let mut sum = [_mm256_setzero_si256(); 8];
    for (row, &q) in tile.as_chunks::<32>().0.as_chunks::<8>().0.iter().zip(query) {
        let q = _mm256_set1_epi32(q);
        for j in 0..8 {
            sum[j] = _mm256_add_epi32(sum[j], _mm256_mullo_epi32(load(&row[j]), q));
        }
    }
    for j in 0..8 {
        store(&mut out[8 * j..8 * j + 8], sum[j]);
    }
}

/// Eight 3-byte words from `24 j` in 4-byte lanes, the top byte zero. The upper half of the last
/// vector would end 4 bytes after the row, so it starts 4 bytes early.
#[inline]
#[target_feature(enable = "avx2")]
fn spread(row: &[u8; 192], j: usize) -> __m256i {
    let early = if j == 7 { 4 } else { 0 };
    let (low, high) = (&row[24 * j..24 * j + 16], &row[24 * j + 12 - early..24 * j + 28 - early]);
    // SAFETY: both slices are 16 readable bytes.
    let raw = unsafe { _mm256_loadu2_m128i(high.as_ptr().cast(), low.as_ptr().cast()) };
    let plain = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    let shifted = _mm_setr_epi8(4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
    let index = _mm256_set_m128i(if early == 0 { plain } else { shifted }, plain);
    _mm256_shuffle_epi8(raw, index)
}

#[target_feature(enable = "avx2")]
pub(crate) fn tile_u24(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
    if w != TILE {
        return portable::matmul::tile_u24(tile, w, query, out);
    }
    let mut sum = [_mm256_setzero_si256(); 8];
    for (row, &q) in tile.as_chunks::<192>().0.iter().zip(query) {
        let q = _mm256_set1_epi32(q);
        for (j, sum) in sum.iter_mut().enumerate() {
            *sum = _mm256_add_epi32(*sum, _mm256_mullo_epi32(spread(row, j), q));
        }
    }
    let mask = _mm256_set1_epi32(0xff_ffff);
    for j in 0..8 {
        store(&mut out[8 * j..8 * j + 8], _mm256_and_si256(sum[j], mask));
    }
}

/// `x q mod 2^64` for `q = (low half, high half)`: three 32-bit products, the two crossed ones in
/// the upper half.
#[inline]
#[target_feature(enable = "avx2")]
fn multiply(x: __m256i, low: __m256i, high: __m256i) -> __m256i {
    let crossed = _mm256_add_epi64(
        _mm256_mul_epu32(_mm256_srli_epi64::<32>(x), low),
        _mm256_mul_epu32(x, high),
    );
    _mm256_add_epi64(_mm256_mul_epu32(x, low), _mm256_slli_epi64::<32>(crossed))
}

#[target_feature(enable = "avx2")]
pub(crate) fn tile_u64(tile: &[u8], w: usize, query: &[i64], out: &mut [u64]) {
    if w != TILE {
        return portable::matmul::tile_u64(tile, w, query, out);
    }
    // Two halves of the tile: sixteen accumulators would leave no register for the products.
    for half in 0..2 {
        let mut sum = [_mm256_setzero_si256(); 8];
        for (row, &q) in tile.as_chunks::<32>().0.as_chunks::<16>().0.iter().zip(query) {
            let (low, high) = (_mm256_set1_epi64x(q), _mm256_set1_epi64x(q >> 32));
            for (sum, x) in sum.iter_mut().zip(&row[8 * half..8 * half + 8]) {
                *sum = _mm256_add_epi64(*sum, multiply(load(x), low, high));
            }
        }
        for (sum, out) in sum.into_iter().zip(out[32 * half..].chunks_exact_mut(4)) {
            store(out, sum);
        }
    }
}

/// Queries in a block: 2 vectors x 4 queries are 8 accumulators, which leaves half of the 16
/// registers to work with.
pub(crate) const QUERIES: usize = 4;

#[inline]
#[target_feature(enable = "avx2")]
fn accumulate_u32(to: &mut [u32; 8], sum: __m256i) {
    let old = load(bytemuck::cast_ref(to));
    store(to, _mm256_add_epi32(old, sum));
}

#[inline]
#[target_feature(enable = "avx2")]
fn accumulate_u24(to: &mut [u32; 8], sum: __m256i) {
    let sum = _mm256_add_epi32(load(bytemuck::cast_ref(to)), sum);
    store(to, _mm256_and_si256(sum, _mm256_set1_epi32(0xff_ffff)));
}

#[inline]
#[target_feature(enable = "avx2")]
fn accumulate_u64(to: &mut [u64; 4], sum: __m256i) {
    let old = load(bytemuck::cast_ref(to));
    store(to, _mm256_add_epi64(old, sum));
}

#[inline]
#[target_feature(enable = "avx2")]
fn plain<const BYTES: usize>(_: &(), row: &[u8; BYTES], j: usize) -> __m256i {
    load(&row.as_chunks::<32>().0[j])
}

#[inline]
#[target_feature(enable = "avx2")]
fn three(_: &(), row: &[u8; 192], j: usize) -> __m256i {
    spread(row, j)
}

#[inline]
#[target_feature(enable = "avx2")]
fn multiply_u64(x: __m256i, q: __m256i) -> __m256i {
    multiply(x, q, _mm256_srli_epi64::<32>(q))
}

blocked!(
    batch_u32, "avx2", i32 => u32,
    row 256, lanes 8, groups 4 of 2, queries 1 2 3 4,
    _mm256_setzero_si256(), (), plain,
    _mm256_set1_epi32, _mm256_mullo_epi32, _mm256_add_epi32, accumulate_u32
);
blocked!(
    batch_u24, "avx2", i32 => u32,
    row 192, lanes 8, groups 4 of 2, queries 1 2 3 4,
    _mm256_setzero_si256(), (), three,
    _mm256_set1_epi32, _mm256_mullo_epi32, _mm256_add_epi32, accumulate_u24
);
blocked!(
    batch_u64, "avx2", i64 => u64,
    row 512, lanes 4, groups 8 of 2, queries 1 2 3 4,
    _mm256_setzero_si256(), (), plain,
    _mm256_set1_epi64x, multiply_u64, _mm256_add_epi64, accumulate_u64
);
