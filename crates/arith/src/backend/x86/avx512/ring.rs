//! Sums of products of packed 50-bit residues with those of queries, block by block, by IFMA
//! throughout.
//!
//! # Layout
//!
//! Memory is the budget: 6.25 bytes a residue. A strip is 8 residues of 50 bits; residue i starts
//! at byte 6 i + floor(i/4), bit 0, 2, 4 or 6. `vpermb`, `vpsrlvq` and an AND unpack it, for four
//! multiply-adds (low and high of U and of V). Sixteen accumulators serve four blocks with adjacent
//! strips (`strip_offset`), read once for up to 32 queries.

use core::arch::x86_64::*;

use super::lazy_reduction::LazyReduction;
use crate::backend::operands::layout::{GROUP, STRIP, STRIP_BYTES};
use crate::backend::portable;
use crate::modulus::Modulus;

pub(crate) use crate::backend::portable::ring::pack50;

/// How far ahead of the strips at hand the packed residues are fetched into the second-level cache:
/// some memory latencies at full bandwidth. Fetching them into the first level would push the query
/// out of it.
const AHEAD: usize = 8192;
/// Packed residues that wait in the second-level cache for the next query.
const RUN_BYTES: usize = 256 << 10;
/// The bytes of a strip among the 64 of a vector.
const STRIP_MASK: __mmask64 = (1 << STRIP_BYTES) - 1;

/// Eight residues from 50 bytes: a byte permutation brings coefficient `i` and up to 6 bits before
/// it into lane `i`, a shift by 0, 2, 4 or 6 drops those, a mask what follows.
struct Unpack {
    bytes: __m512i,
    shift: __m512i,
    mask: __m512i,
}

impl Unpack {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new() -> Self {
        let mut index = [0u8; 64];
        for (i, byte) in index.iter_mut().enumerate() {
            *byte = (50 * (i / 8) / 8 + i % 8) as u8;
        }
        // SAFETY: the array is 64 readable bytes.
        let bytes = unsafe { _mm512_loadu_si512(index.as_ptr().cast()) };
        Unpack {
            bytes,
            shift: _mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6),
            mask: _mm512_set1_epi64((1 << 50) - 1),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn vector(&self, strip: &[u8; STRIP_BYTES]) -> __m512i {
        // SAFETY: the mask lets only the 50 bytes of the strip be read.
        let raw = unsafe { _mm512_maskz_loadu_epi8(STRIP_MASK, strip.as_ptr().cast()) };
        let lanes = _mm512_srlv_epi64(_mm512_permutexvar_epi8(self.bytes, raw), self.shift);
        _mm512_and_si512(lanes, self.mask)
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &[u64; STRIP]) -> __m512i {
    // SAFETY: the reference covers eight readable words.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(crate) fn unpack50(bytes: &[u8], out: &mut [u64]) {
    let unpack = Unpack::new();
    for (strip, row) in
        bytes.as_chunks::<STRIP_BYTES>().0.iter().zip(out.as_chunks_mut::<STRIP>().0)
    {
        let x = unpack.vector(strip);
        // SAFETY: the reference covers eight writable words.
        unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), x) };
    }
}

/// All queries over a run of groups before the next, so that the database is read once.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi")]
pub(crate) fn scan(
    data: &[u8],
    nodes: usize,
    queries: &[&[u64]],
    m: &Modulus,
    u: &mut [u64],
    v: &mut [u64],
) {
    if nodes == 0 {
        return portable::ring::scan(data, nodes, queries, m, u, v);
    }
    let (unpack, lazy) = (Unpack::new(), LazyReduction::new(m));
    let strips = data.as_chunks::<STRIP_BYTES>().0;
    let blocks = strips.len() / nodes;
    // A run of groups fits the second-level cache beside the queries; within it a query's strip
    // stays in the first.
    let run = (RUN_BYTES / (GROUP * nodes * STRIP_BYTES)).max(1) * GROUP;
    for (start, data) in strips.chunks(run * nodes).enumerate() {
        for (k, query) in queries.iter().enumerate() {
            let query = query.as_chunks::<STRIP>().0;
            for (index, group) in data.chunks(GROUP * nodes).enumerate() {
                let at = (k * blocks + start * run + index * GROUP) * STRIP;
                let width = group.len() / nodes;
                let (u, v) = (&mut u[at..at + width * STRIP], &mut v[at..at + width * STRIP]);
                match (width, k) {
                    (4, 0) => scan_group::<4, true>(&unpack, &lazy, group, query, u, v),
                    (4, _) => scan_group::<4, false>(&unpack, &lazy, group, query, u, v),
                    (3, _) => scan_group::<3, false>(&unpack, &lazy, group, query, u, v),
                    (2, _) => scan_group::<2, false>(&unpack, &lazy, group, query, u, v),
                    _ => scan_group::<1, false>(&unpack, &lazy, group, query, u, v),
                }
            }
        }
    }
}

/// One query over `WIDTH` blocks: low and high halves of U and V, sixteen accumulators for four
/// blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi")]
fn scan_group<const WIDTH: usize, const FETCH: bool>(
    unpack: &Unpack,
    lazy: &LazyReduction,
    group: &[[u8; STRIP_BYTES]],
    query: &[[u64; STRIP]],
    u: &mut [u64],
    v: &mut [u64],
) {
    let zero = _mm512_setzero_si512();
    let mut low_u = [zero; WIDTH];
    let mut high_u = [zero; WIDTH];
    let mut low_v = [zero; WIDTH];
    let mut high_v = [zero; WIDTH];
    let pairs = query.as_chunks::<2>().0;
    for (strips, [b, a]) in group.as_chunks::<WIDTH>().0.iter().zip(pairs) {
        if FETCH {
            fetch(&strips[0]);
        }
        let (b, a) = (load(b), load(a));
        for i in 0..WIDTH {
            let d = unpack.vector(&strips[i]);
            low_u[i] = _mm512_madd52lo_epu64(low_u[i], d, b);
            high_u[i] = _mm512_madd52hi_epu64(high_u[i], d, b);
            low_v[i] = _mm512_madd52lo_epu64(low_v[i], d, a);
            high_v[i] = _mm512_madd52hi_epu64(high_v[i], d, a);
        }
    }
    for i in 0..WIDTH {
        lazy.store(low_u[i], high_u[i], &mut u[STRIP * i..STRIP * i + STRIP]);
        lazy.store(low_v[i], high_v[i], &mut v[STRIP * i..STRIP * i + STRIP]);
    }
}

#[inline]
#[target_feature(enable = "sse")]
#[allow(unused_unsafe)] // Some toolchains we serve declare the prefetch safe, some not.
fn fetch(strip: &[u8; STRIP_BYTES]) {
    // Four strips cover three to four cache lines; fetching every 64th byte of them touches each.
    for line in 0..4 {
        let ahead = strip.as_ptr().wrapping_add(AHEAD + 64 * line);
        // SAFETY: a prefetch of any address is allowed; it never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(ahead.cast()) };
    }
}
