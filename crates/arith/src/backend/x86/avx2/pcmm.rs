//! Plaintext matrix: residues and signed weights enter, sums leave, by exact multiply-adds of
//! doubles.

use super::lanes::*;
use crate::backend::operands::pcmm::Weights;
use crate::backend::portable;
use crate::backend::shared::pcmm::{Shape, walk};
use crate::modulus::KERNEL_BITS;
use crate::modulus::Modulus;
use core::arch::x86_64::_mm256_fmadd_pd;

/// 4 vectors × 3 outputs are 12 accumulators; the other four registers hold one vector and three
/// weights.
const OUTPUTS: usize = 3;
/// The widest weights for which residues go in two pieces of 25 bits; wider ones take three of 17.
const TWO_PIECES: u32 = 22;

/// How residues are cut, and how many products may be added before the sums pass the `2^53` that
/// doubles hold exactly.
struct Cut {
    terms: usize,
    /// `2^bits` and `2^(2 bits)` modulo `q`, centred, and what `mul_root` needs beside them.
    radices: [(V, V); 2],
}

impl Cut {
    #[target_feature(enable = "avx2,fma")]
    fn new(bits: u32, weights: &Weights, m: &Modulus) -> Self {
        let radix = |exponent: u32| {
            let value = m.to_centered(m.reduce(1 << exponent)) as f64;
            spread(value, value / m.value() as f64)
        };
        Cut { terms: 1 << (53 - bits - weights.bits()), radices: [radix(bits), radix(2 * bits)] }
    }
}

/// One tile, `P` pieces of `N` vectors each, against `K` outputs.
#[target_feature(enable = "avx2,fma")]
fn tile<const P: usize, const N: usize, const K: usize>(
    c: &Constants,
    cut: &Cut,
    x: &[[[[f64; LANES]; N]; P]],
    w: &[[f64; K]],
    out: &mut [u64],
) {
    let zero = load_residues(&[0; LANES]);
    let mut total = [[zero; N]; K];
    for (x, w) in x.chunks(cut.terms).zip(w.chunks(cut.terms)) {
        let mut sums = [[[zero; N]; P]; K];
        for (x, w) in x.iter().zip(w) {
            let weights = w.map(|w| spread(w, w).0);
            for p in 0..P {
                for j in 0..N {
                    let x = load_doubles(&x[p][j]);
                    for k in 0..K {
                        sums[k][p][j] = _mm256_fmadd_pd(x, weights[k], sums[k][p][j]);
                    }
                }
            }
        }
        // A sum is at most 2^53: reduced it is below 2q, times a radix below 1.6 q, and two or
        // three of them and the total before stay below 8q.
        for (total, sums) in total.iter_mut().zip(&sums) {
            for (j, total) in total.iter_mut().enumerate() {
                let mut sum = add(*total, reduce(c, sums[0][j]));
                for (piece, &radix) in sums[1..].iter().zip(&cut.radices) {
                    sum = add(sum, mul_root(c, piece[j], radix));
                }
                *total = reduce(c, sum);
            }
        }
    }
    for (out, &x) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(total.as_flattened()) {
        store_residues(c, out, x);
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_doubles(from: &[f64; LANES]) -> V {
    load_values(bytemuck::cast_ref(from))
}

/// Piece after piece, each for all coefficients.
fn pack<const P: usize>(part: &[u64], to: &mut [f64], bits: u32) {
    for (p, to) in to.chunks_exact_mut(part.len()).take(P).enumerate() {
        for (to, &x) in to.iter_mut().zip(part) {
            *to = ((x >> (p as u32 * bits)) & ((1 << bits) - 1)) as i64 as f64;
        }
    }
}

#[target_feature(enable = "avx2,fma")]
pub(crate) fn multiply(
    weights: &Weights,
    inputs: &[&[u64]],
    outputs: &mut [&mut [u64]],
    m: &Modulus,
) {
    if m.value() >> KERNEL_BITS != 0 {
        return portable::pcmm::multiply(weights, inputs, outputs, m);
    }
    if weights.bits() <= TWO_PIECES {
        pieces::<2, 2>(25, weights, inputs, outputs, m);
    } else {
        pieces::<3, 1>(17, weights, inputs, outputs, m);
    }
}

#[target_feature(enable = "avx2,fma")]
fn pieces<const P: usize, const N: usize>(
    bits: u32,
    weights: &Weights,
    inputs: &[&[u64]],
    outputs: &mut [&mut [u64]],
    m: &Modulus,
) {
    let q = m.value() as f64;
    let (c, cut) = (Constants::new(q, 1.0 / q), Cut::new(bits, weights, m));
    let coefficients = N * LANES;
    walk(
        Shape { coefficients, words: P * coefficients, block: OUTPUTS },
        weights,
        inputs,
        outputs,
        f64::from,
        |part, to| pack::<P>(part, to, bits),
        |x, w, out| {
            let x = bytemuck::cast_slice::<f64, [f64; LANES]>(x);
            let x = x.as_chunks::<N>().0.as_chunks::<P>().0;
            match out.len() / coefficients {
                1 => tile::<P, N, 1>(&c, &cut, x, w.as_chunks().0, out),
                2 => tile::<P, N, 2>(&c, &cut, x, w.as_chunks().0, out),
                _ => tile::<P, N, OUTPUTS>(&c, &cut, x, w.as_chunks().0, out),
            }
        },
    );
}
