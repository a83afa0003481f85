//! Packed 50-bit residues and one or two queries enter, the sums of products of every block leave. IFMA throughout.

use core::arch::x86_64::*;

use super::late::Late;
use crate::backend::portable;
use crate::modulus::Modulus;
use crate::ring::{STRIP, STRIP_BYTES};

/// How far ahead of the block at hand the packed residues are fetched: about a memory latency at full bandwidth.
const AHEAD: usize = 4096;

/// Eight residues from the 50 bytes at `from + 50 j`: a byte permutation brings coefficient `i` and up to 6 bits before it
/// into lane `i`, a shift by 0, 2, 4 or 6 drops those, a mask what follows. The last of the four loads starts 14 bytes
/// early, so that none leaves the strip.
struct Unpack {
    bytes: __m512i,
    last_bytes: __m512i,
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
            last_bytes: _mm512_add_epi8(bytes, _mm512_set1_epi8(14)),
            shift: _mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6),
            mask: _mm512_set1_epi64((1 << 50) - 1),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi")]
    fn vector(&self, strip: &[u8; STRIP_BYTES], j: usize) -> __m512i {
        let (start, index) = if j < 3 { (50 * j, self.bytes) } else { (136, self.last_bytes) };
        // SAFETY: `start` is at most 136 and 136 + 64 = 200, the length of the strip.
        let raw = unsafe { _mm512_loadu_si512(strip.as_ptr().add(start).cast()) };
        let lanes = _mm512_srlv_epi64(_mm512_permutexvar_epi8(index, raw), self.shift);
        _mm512_and_si512(lanes, self.mask)
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &[u64; 2 * STRIP], at: usize) -> __m512i {
    // SAFETY: the slice indexing checks that eight words lie from `at` on.
    unsafe { _mm512_loadu_si512(words[at..at + 8].as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(crate) fn unpack50(bytes: &[u8], out: &mut [u64]) {
    let unpack = Unpack::new();
    let (strips, rest) = bytes.as_chunks::<STRIP_BYTES>();
    let (rows, tail) = out.as_chunks_mut::<STRIP>();
    for (strip, row) in strips.iter().zip(rows) {
        for j in 0..4 {
            let x = unpack.vector(strip, j);
            // SAFETY: the slice is eight writable words.
            unsafe { _mm512_storeu_si512(row[8 * j..8 * j + 8].as_mut_ptr().cast(), x) };
        }
    }
    portable::ring::unpack50(rest, tail);
}

/// All queries over a block before the next block: the packed residues come from memory once.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi")]
pub(crate) fn scan(
    data: &[u8],
    nodes: usize,
    queries: &[&[u64]],
    m: &Modulus,
    u: &mut [u64],
    v: &mut [u64],
) {
    let (unpack, late) = (Unpack::new(), Late::new(m));
    let (strips, nodes) = (data.as_chunks::<STRIP_BYTES>().0, nodes.max(1));
    let blocks = strips.len() / nodes;
    for (i, block) in strips.chunks_exact(nodes).enumerate() {
        for (k, query) in queries.iter().enumerate() {
            let at = (k * blocks + i) * STRIP;
            let (u, v) = (&mut u[at..at + STRIP], &mut v[at..at + STRIP]);
            one(&unpack, &late, block, query, k == 0, u, v);
        }
    }
}

/// One block and one query: sixteen accumulators, the low and high halves of U and V for four vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512ifma,avx512vbmi")]
fn one(
    unpack: &Unpack,
    late: &Late,
    block: &[[u8; STRIP_BYTES]],
    query: &[u64],
    fetch: bool,
    u: &mut [u64],
    v: &mut [u64],
) {
    let zero = _mm512_setzero_si512();
    let (mut low_u, mut high_u) = ([zero; 4], [zero; 4]);
    let (mut low_v, mut high_v) = ([zero; 4], [zero; 4]);
    for (strip, q) in block.iter().zip(query.as_chunks::<{ 2 * STRIP }>().0) {
        if fetch {
            prefetch(strip);
        }
        for j in 0..4 {
            let d = unpack.vector(strip, j);
            let (b, a) = (load(q, 8 * j), load(q, STRIP + 8 * j));
            low_u[j] = _mm512_madd52lo_epu64(low_u[j], d, b);
            high_u[j] = _mm512_madd52hi_epu64(high_u[j], d, b);
            low_v[j] = _mm512_madd52lo_epu64(low_v[j], d, a);
            high_v[j] = _mm512_madd52hi_epu64(high_v[j], d, a);
        }
    }
    for j in 0..4 {
        late.store(low_u[j], high_u[j], &mut u[8 * j..8 * j + 8]);
        late.store(low_v[j], high_v[j], &mut v[8 * j..8 * j + 8]);
    }
}

#[inline]
#[target_feature(enable = "sse")]
#[allow(unused_unsafe)] // Some toolchains we serve declare the prefetch safe, some not.
fn prefetch(strip: &[u8; STRIP_BYTES]) {
    // A strip covers three to four cache lines; fetching every 64th byte of it touches each.
    for line in 0..4 {
        let ahead = strip.as_ptr().wrapping_add(AHEAD + 64 * line);
        // SAFETY: a prefetch of any address is allowed; it never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.cast()) };
    }
}
