//! Wrapping inner products of a tile of `[dim][w]` words with queries, sixteen at a time.

use core::arch::x86_64::*;

use crate::backend::operands::layout::TILE;
use crate::backend::portable;
use crate::backend::shared::matmul::{SLAB, blocked};

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference covers 64 readable bytes; the load has no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store<T>(to: &mut [T], x: __m512i) {
    assert!(size_of_val(to) >= 64);
    // SAFETY: the assertion saw 64 writable bytes.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), x) }
}

#[target_feature(enable = "avx512f")]
pub(crate) fn tile_u32(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
    if w != TILE {
        return portable::matmul::tile_u32(tile, w, query, out);
    }
    let mut sum = [_mm512_setzero_si512(); 4];
    for (row, &q) in tile.as_chunks::<64>().0.as_chunks::<4>().0.iter().zip(query) {
        let q = _mm512_set1_epi32(q);
        for j in 0..4 {
            sum[j] = _mm512_add_epi32(sum[j], _mm512_mullo_epi32(load(&row[j]), q));
        }
    }
    for j in 0..4 {
        store(&mut out[16 * j..16 * j + 16], sum[j]);
    }
}

/// Sixteen 3-byte words spread over 4-byte lanes; whatever lands above them is multiples of `2^24`
/// and drops out.
struct Spread {
    bytes: __m512i,
    last_bytes: __m512i,
}

impl Spread {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new() -> Self {
        let mut index = [0u8; 64];
        for (i, byte) in index.iter_mut().enumerate() {
            *byte = (3 * (i / 4) + i % 4) as u8;
        }
        let bytes = load(&index);
        Spread { bytes, last_bytes: _mm512_add_epi8(bytes, _mm512_set1_epi8(16)) }
    }

    /// Vector `j` of the 192 bytes of a row. The last load ends at byte 192, so the fourth byte of
    /// its last lane would be one past its register; the index wraps, and that byte drops out like
    /// the others.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi")]
    fn vector(&self, row: &[u8; 192], j: usize) -> __m512i {
        let (start, index) = if j < 3 { (48 * j, self.bytes) } else { (128, self.last_bytes) };
        // SAFETY: `start` is at most 128 and 128 + 64 = 192, the length of the row.
        let raw = unsafe { _mm512_loadu_si512(row.as_ptr().add(start).cast()) };
        _mm512_permutexvar_epi8(index, raw)
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(crate) fn tile_u24(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
    if w != TILE {
        return portable::matmul::tile_u24(tile, w, query, out);
    }
    let spread = Spread::new();
    let mut sum = [_mm512_setzero_si512(); 4];
    for (row, &q) in tile.as_chunks::<192>().0.iter().zip(query) {
        let q = _mm512_set1_epi32(q);
        for (j, sum) in sum.iter_mut().enumerate() {
            *sum = _mm512_add_epi32(*sum, _mm512_mullo_epi32(spread.vector(row, j), q));
        }
    }
    let mask = _mm512_set1_epi32(0xff_ffff);
    for j in 0..4 {
        store(&mut out[16 * j..16 * j + 16], _mm512_and_si512(sum[j], mask));
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub(crate) fn tile_u64(tile: &[u8], w: usize, query: &[i64], out: &mut [u64]) {
    if w != TILE {
        return portable::matmul::tile_u64(tile, w, query, out);
    }
    let mut sum = [_mm512_setzero_si512(); 8];
    for (row, &q) in tile.as_chunks::<64>().0.as_chunks::<8>().0.iter().zip(query) {
        let q = _mm512_set1_epi64(q);
        for j in 0..8 {
            sum[j] = _mm512_add_epi64(sum[j], _mm512_mullo_epi64(load(&row[j]), q));
        }
    }
    for j in 0..8 {
        store(&mut out[8 * j..8 * j + 8], sum[j]);
    }
}

/// Queries in a block: 4 vectors x 6 queries are 24 accumulators, and 4 + 1 + 1 registers more make
/// 30 of 32.
pub(crate) const QUERIES: usize = 6;

#[inline]
#[target_feature(enable = "avx512f")]
fn accumulate_u32(to: &mut [u32; 16], sum: __m512i) {
    let old = load(bytemuck::cast_ref(to));
    store(to, _mm512_add_epi32(old, sum));
}

#[inline]
#[target_feature(enable = "avx512f")]
fn accumulate_u24(to: &mut [u32; 16], sum: __m512i) {
    let sum = _mm512_add_epi32(load(bytemuck::cast_ref(to)), sum);
    store(to, _mm512_and_si512(sum, _mm512_set1_epi32(0xff_ffff)));
}

#[inline]
#[target_feature(enable = "avx512f")]
fn accumulate_u64(to: &mut [u64; 8], sum: __m512i) {
    let old = load(bytemuck::cast_ref(to));
    store(to, _mm512_add_epi64(old, sum));
}

#[inline]
#[target_feature(enable = "avx512f")]
fn plain<const BYTES: usize>(_: &(), row: &[u8; BYTES], j: usize) -> __m512i {
    load(&row.as_chunks::<64>().0[j])
}

#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn three(spread: &Spread, row: &[u8; 192], j: usize) -> __m512i {
    spread.vector(row, j)
}

blocked!(
    batch_u32, "avx512f", i32 => u32,
    row 256, lanes 16, groups 1 of 4, queries 1 2 3 4 5 6,
    _mm512_setzero_si512(), (), plain,
    _mm512_set1_epi32, _mm512_mullo_epi32, _mm512_add_epi32, accumulate_u32
);
blocked!(
    batch_u24, "avx512f,avx512bw,avx512vbmi", i32 => u32,
    row 192, lanes 16, groups 1 of 4, queries 1 2 3 4 5 6,
    _mm512_setzero_si512(), Spread::new(), three,
    _mm512_set1_epi32, _mm512_mullo_epi32, _mm512_add_epi32, accumulate_u24
);
blocked!(
    batch_u64, "avx512f,avx512dq", i64 => u64,
    row 512, lanes 8, groups 2 of 4, queries 1 2 3 4 5 6,
    _mm512_setzero_si512(), (), plain,
    _mm512_set1_epi64, _mm512_mullo_epi64, _mm512_add_epi64, accumulate_u64
);
