//! Products of rows of residues with signed weights, by 52-bit multiply-adds.

use core::arch::x86_64::*;

use super::lazy_reduction::LazyReduction;
use crate::backend::operands::pcmm::Weights;
use crate::backend::portable;
use crate::backend::shared::pcmm::{Shape, walk};
use crate::modulus::KERNEL_BITS;
use crate::modulus::Modulus;

const LANES: usize = 8;
/// Vectors of a tile: 4 vectors × 3 outputs × 2 halves are 24 accumulators, for 4 loads and 3
/// broadcasts.
const VECTORS: usize = 4;
const OUTPUTS: usize = 3;
/// Terms after which a sum of 52-bit halves and the residue before it could pass 64 bits.
const TERMS: usize = 4095;

type Line = [[u64; LANES]; VECTORS];

#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &[u64; LANES]) -> __m512i {
    // SAFETY: the reference covers 64 readable bytes; the load has no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// One tile against `K` outputs. A weight is its residue, so nothing has a sign; the halves of a
/// product are below `2^52`, and two instructions a product is what the accumulators' 64 bits ask
/// for.
#[target_feature(enable = "avx512f,avx512ifma")]
fn tile<const K: usize>(lazy: &LazyReduction, x: &[Line], w: &[[u64; K]], out: &mut [Line]) {
    let zero = _mm512_setzero_si512();
    out.fill([[0; LANES]; VECTORS]);
    for (x, w) in x.chunks(TERMS).zip(w.chunks(TERMS)) {
        let (mut low, mut high) = ([[zero; VECTORS]; K], [[zero; VECTORS]; K]);
        for (low, out) in low.iter_mut().zip(out.iter()) {
            for (low, out) in low.iter_mut().zip(out) {
                *low = load(out);
            }
        }
        for (x, w) in x.iter().zip(w) {
            let mut vectors = [zero; VECTORS];
            for (vector, x) in vectors.iter_mut().zip(x) {
                *vector = load(x);
            }
            for k in 0..K {
                let w = _mm512_set1_epi64(w[k] as i64);
                for j in 0..VECTORS {
                    low[k][j] = _mm512_madd52lo_epu64(low[k][j], vectors[j], w);
                    high[k][j] = _mm512_madd52hi_epu64(high[k][j], vectors[j], w);
                }
            }
        }
        for (out, (low, high)) in out.iter_mut().zip(low.iter().zip(&high)) {
            for (out, (&low, &high)) in out.iter_mut().zip(low.iter().zip(high)) {
                lazy.store(low, high, out);
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(crate) fn multiply(
    weights: &Weights,
    inputs: &[&[u64]],
    outputs: &mut [&mut [u64]],
    m: &Modulus,
) {
    if m.value() >> KERNEL_BITS != 0 {
        return portable::pcmm::multiply(weights, inputs, outputs, m);
    }
    let lazy = LazyReduction::new(m);
    let coefficients = VECTORS * LANES;
    walk(
        Shape { coefficients, words: coefficients, block: OUTPUTS },
        weights,
        inputs,
        outputs,
        |w| m.from_i64(i64::from(w)),
        |part, to: &mut [u64]| to.copy_from_slice(part),
        |x, w, out| {
            let (x, out) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(out));
            match out.len() {
                1 => tile::<1>(&lazy, x, w.as_chunks().0, out),
                2 => tile::<2>(&lazy, x, w.as_chunks().0, out),
                _ => tile::<OUTPUTS>(&lazy, x, w.as_chunks().0, out),
            }
        },
    );
}
