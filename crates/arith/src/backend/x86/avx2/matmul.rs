//! Word scan: a tile of `[dim][w]` words and queries enter, wrapping inner products leave, eight at
//! a time.

use core::arch::x86_64::*;

use crate::backend::operands::layout::TILE;
use crate::backend::portable;
use crate::backend::shared::matmul::{SLAB, blocked};
use crate::backend::x86::prefetch::prefetch_ahead;

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

/// How far ahead a scan for one query fetches.
const PAGE: usize = 4096;

#[inline(always)]
fn fetch<T>(row: &T, lines: usize) {
    for line in 0..lines {
        prefetch_ahead(row, PAGE + 64 * line);
    }
}

#[target_feature(enable = "avx2")]
pub(crate) fn tile_u32(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
    if w != TILE {
        return portable::matmul::tile_u32(tile, w, query, out);
    }
    let mut sum = [_mm256_setzero_si256(); 8];
    for (row, &q) in tile.as_chunks::<32>().0.as_chunks::<8>().0.iter().zip(query) {
        let q = _mm256_set1_epi32(q);
        fetch(row, 4);
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
        fetch(row, 3);
        for (j, sum) in sum.iter_mut().enumerate() {
            *sum = _mm256_add_epi32(*sum, _mm256_mullo_epi32(spread(row, j), q));
        }
    }
    let mask = _mm256_set1_epi32(0xff_ffff);
    for j in 0..8 {
        store(&mut out[8 * j..8 * j + 8], _mm256_and_si256(sum[j], mask));
    }
}

/// Products modulo `2^64`, or sums of such, in two parts that are put together at the end: `low` as
/// it is, and the halves of `crossed`, modulo `2^32`, above it.
#[derive(Clone, Copy)]
struct Product {
    low: __m256i,
    crossed: __m256i,
}

impl Product {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn zero() -> Self {
        Product { low: _mm256_setzero_si256(), crossed: _mm256_setzero_si256() }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn total(self) -> __m256i {
        let both = _mm256_add_epi32(self.crossed, _mm256_srli_epi64::<32>(self.crossed));
        _mm256_add_epi64(self.low, _mm256_slli_epi64::<32>(both))
    }
}

/// A query's word in every lane, as it is and with its halves exchanged.
#[inline]
#[target_feature(enable = "avx2")]
fn broadcast_u64(q: i64) -> [__m256i; 2] {
    let q = _mm256_set1_epi64x(q);
    [q, _mm256_shuffle_epi32::<0b10_11_00_01>(q)]
}

/// Three 32-bit products by two instructions: one multiplies both halves of `x` by the other halves
/// of `q`.
#[inline]
#[target_feature(enable = "avx2")]
fn multiply_u64(x: __m256i, [q, exchanged]: [__m256i; 2]) -> Product {
    Product { low: _mm256_mul_epu32(x, q), crossed: _mm256_mullo_epi32(x, exchanged) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_u64(sum: Product, product: Product) -> Product {
    Product {
        low: _mm256_add_epi64(sum.low, product.low),
        crossed: _mm256_add_epi32(sum.crossed, product.crossed),
    }
}

/// Dimensions over which a quarter of a tile is summed before the next one: a page. The page after
/// it is fetched in order meanwhile, which a prefetcher would not do that sees quarters of rows.
const STEP: usize = PAGE / (8 * TILE);

#[target_feature(enable = "avx2")]
pub(crate) fn tile_u64(tile: &[u8], w: usize, query: &[i64], out: &mut [u64]) {
    if w != TILE {
        return portable::matmul::tile_u64(tile, w, query, out);
    }
    let mut sums = [[Product::zero(); 4]; 4];
    let rows = tile.as_chunks::<32>().0.as_chunks::<4>().0.as_chunks::<4>().0;
    for (rows, query) in rows.chunks(STEP).zip(query.chunks(STEP)) {
        for (quarter, sums) in sums.iter_mut().enumerate() {
            let mut sum = *sums;
            for (i, (row, &q)) in rows.iter().zip(query).enumerate() {
                let q = broadcast_u64(q);
                let two_lines = 128 * (STEP * quarter + i);
                prefetch_ahead(&rows[0], PAGE + two_lines);
                prefetch_ahead(&rows[0], PAGE + two_lines + 64);
                for (sum, x) in sum.iter_mut().zip(&row[quarter]) {
                    *sum = add_u64(*sum, multiply_u64(load(x), q));
                }
            }
            *sums = sum;
        }
    }
    for (sum, out) in sums.as_flattened().iter().zip(out.chunks_exact_mut(4)) {
        store(out, sum.total());
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
fn accumulate_u64(to: &mut [u64; 4], sum: Product) {
    let old = load(bytemuck::cast_ref(to));
    store(to, _mm256_add_epi64(old, sum.total()));
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
    row 512, lanes 4, groups 16 of 1, queries 1 2 3 4,
    Product::zero(), (), plain,
    broadcast_u64, multiply_u64, add_u64, accumulate_u64
);
