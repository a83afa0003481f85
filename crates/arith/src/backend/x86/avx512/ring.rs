//! Sums of products of packed 50-bit residues with those of queries, block by block, by IFMA
//! throughout.
//!
//! # Layout
//!
//! Memory is the budget: 6.25 bytes a residue. A strip is 8 residues of 50 bits; residue i starts
//! at byte 6 i + floor(i/4), bit 0, 2, 4 or 6. `vpermb`, `vpsrlvq` and an AND unpack it, for four
//! multiply-adds (low and high of U and of V). Sixteen accumulators serve four blocks with adjacent
//! strips (`strip_offset`), read and unpacked once for up to 32 queries.

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
/// Nodes whose residues are unpacked for all queries: with four blocks 16 KB.
const NODES: usize = 64;
/// Groups of blocks that several queries go over together.
const RUN: usize = 8;
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

/// What an accumulator holds of a block: low and high halves of U, then of V.
type Sums = [__m512i; 4];

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
    let [query] = queries else {
        return scan_together(&unpack, &lazy, strips, nodes, queries, [u, v]);
    };
    let query = query.as_chunks::<STRIP>().0.as_chunks::<2>().0;
    let outs = u.chunks_mut(GROUP * STRIP).zip(v.chunks_mut(GROUP * STRIP));
    for (group, (u, v)) in strips.chunks(GROUP * nodes).zip(outs) {
        let mut sums = [[_mm512_setzero_si512(); 4]; GROUP];
        match group.len() / nodes {
            4 => scan_group::<4>(&unpack, group, query, &mut sums),
            3 => scan_group::<3>(&unpack, group, query, &mut sums),
            2 => scan_group::<2>(&unpack, group, query, &mut sums),
            _ => scan_group::<1>(&unpack, group, query, &mut sums),
        }
        store(&lazy, &sums, u, v);
    }
}

/// Several queries over a run of groups before the next, so that the database is read once: its residues are unpacked into the
/// first-level cache some nodes at a time, and the queries' words of these nodes stay in the second.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi")]
fn scan_together(
    unpack: &Unpack,
    lazy: &LazyReduction,
    strips: &[[u8; STRIP_BYTES]],
    nodes: usize,
    queries: &[&[u64]],
    [u, v]: [&mut [u64]; 2],
) {
    let zero = _mm512_setzero_si512();
    let blocks = strips.len() / nodes;
    let mut unpacked = [zero; GROUP * NODES];
    let mut sums = vec![[[zero; 4]; GROUP]; RUN * queries.len()];
    for (start, run) in strips.chunks(RUN * GROUP * nodes).enumerate() {
        sums.fill([[zero; 4]; GROUP]);
        for first in (0..nodes).step_by(NODES) {
            let here = first..nodes.min(first + NODES);
            for (group, sums) in run.chunks(GROUP * nodes).zip(sums.chunks_mut(queries.len())) {
                let width = group.len() / nodes;
                let packed = &group[here.start * width..here.end * width];
                let unpacked = &mut unpacked[..packed.len()];
                for (strips, out) in packed.chunks(GROUP).zip(unpacked.chunks_mut(GROUP)) {
                    fetch(&strips[0]);
                    for (strip, out) in strips.iter().zip(out) {
                        *out = unpack.vector(strip);
                    }
                }
                for (query, sums) in queries.iter().zip(sums) {
                    let query = &query.as_chunks::<STRIP>().0.as_chunks::<2>().0[here.clone()];
                    match width {
                        4 => accumulate::<4>(unpacked, query, sums),
                        3 => accumulate::<3>(unpacked, query, sums),
                        2 => accumulate::<2>(unpacked, query, sums),
                        _ => accumulate::<1>(unpacked, query, sums),
                    }
                }
            }
        }
        for (index, group) in run.chunks(GROUP * nodes).enumerate() {
            let length = group.len() / nodes * STRIP;
            for (k, sums) in sums[index * queries.len()..][..queries.len()].iter().enumerate() {
                let at = (k * blocks + (start * RUN + index) * GROUP) * STRIP;
                store(lazy, sums, &mut u[at..at + length], &mut v[at..at + length]);
            }
        }
    }
}

/// The sums of as many blocks as there is room for.
#[target_feature(enable = "avx512f,avx512ifma")]
fn store(lazy: &LazyReduction, sums: &[Sums; GROUP], u: &mut [u64], v: &mut [u64]) {
    let outs = u.chunks_exact_mut(STRIP).zip(v.chunks_exact_mut(STRIP));
    for ([low_u, high_u, low_v, high_v], (u, v)) in sums.iter().zip(outs) {
        lazy.store(*low_u, *high_u, u);
        lazy.store(*low_v, *high_v, v);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply_add([low_u, high_u, low_v, high_v]: Sums, d: __m512i, [b, a]: [__m512i; 2]) -> Sums {
    [
        _mm512_madd52lo_epu64(low_u, d, b),
        _mm512_madd52hi_epu64(high_u, d, b),
        _mm512_madd52lo_epu64(low_v, d, a),
        _mm512_madd52hi_epu64(high_v, d, a),
    ]
}

/// One query over unpacked nodes of `WIDTH` blocks.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
fn accumulate<const WIDTH: usize>(
    unpacked: &[__m512i],
    query: &[[[u64; STRIP]; 2]],
    sums: &mut [Sums; GROUP],
) {
    let mut sum = [[_mm512_setzero_si512(); 4]; WIDTH];
    sum.copy_from_slice(&sums[..WIDTH]);
    for (d, [b, a]) in unpacked.as_chunks::<WIDTH>().0.iter().zip(query) {
        let words = [load(b), load(a)];
        for i in 0..WIDTH {
            sum[i] = multiply_add(sum[i], d[i], words);
        }
    }
    sums[..WIDTH].copy_from_slice(&sum);
}

/// One query over `WIDTH` blocks, sixteen accumulators for four.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi")]
fn scan_group<const WIDTH: usize>(
    unpack: &Unpack,
    group: &[[u8; STRIP_BYTES]],
    query: &[[[u64; STRIP]; 2]],
    sums: &mut [Sums; GROUP],
) {
    let mut sum = [[_mm512_setzero_si512(); 4]; WIDTH];
    for (strips, [b, a]) in group.as_chunks::<WIDTH>().0.iter().zip(query) {
        fetch(&strips[0]);
        let words = [load(b), load(a)];
        for i in 0..WIDTH {
            sum[i] = multiply_add(sum[i], unpack.vector(&strips[i]), words);
        }
    }
    sums[..WIDTH].copy_from_slice(&sum);
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
