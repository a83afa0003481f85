//! Lanes of doubles: four in a register.

use core::arch::x86_64::*;

pub(crate) type V = __m256d;

crate::backend::shared::double_lanes::double_lanes!("avx2,fma");

/// `2^52`: a double in `[2^52, 2^53)` has the integer above `2^52` as its low 52 bits.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn shift() -> V {
    _mm256_set1_pd((1u64 << 52) as f64)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn zero() -> V {
    _mm256_setzero_pd()
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn set_double(x: f64) -> V {
    _mm256_set1_pd(x)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn load_values(from: &[u64; LANES]) -> V {
    // SAFETY: the reference covers 32 readable bytes; the load has no alignment.
    unsafe { _mm256_loadu_pd(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn store_values(to: &mut [u64; LANES], x: V) {
    // SAFETY: the reference covers 32 writable bytes; the store has no alignment.
    unsafe { _mm256_storeu_pd(to.as_mut_ptr().cast(), x) }
}

/// Words below `2^52`, exactly.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn load_residues(from: &[u64; LANES]) -> V {
    _mm256_sub_pd(_mm256_or_pd(load_values(from), shift()), shift())
}

/// Doubles in `(-q, q)` to words in `[0, q)`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn store_residues(c: &Constants, to: &mut [u64; LANES], x: V) {
    let negative = _mm256_cmp_pd::<_CMP_LT_OQ>(x, _mm256_setzero_pd());
    let x = _mm256_add_pd(x, _mm256_and_pd(negative, c.q));
    store_values(to, _mm256_xor_pd(_mm256_add_pd(x, shift()), shift()));
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn add(x: V, y: V) -> V {
    _mm256_add_pd(x, y)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn sub(x: V, y: V) -> V {
    _mm256_sub_pd(x, y)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn product(x: V, y: V) -> V {
    _mm256_mul_pd(x, y)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn fused(x: V, y: V, z: V) -> V {
    _mm256_fmadd_pd(x, y, z)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn less(x: V, y: V, z: V) -> V {
    _mm256_fnmadd_pd(x, y, z)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn rest(x: V, y: V, z: V) -> V {
    _mm256_fmsub_pd(x, y, z)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn nearest(x: V) -> V {
    _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x)
}

/// `y` where `x` is above the limit, else 0.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn above(x: V, limit: V, y: V) -> V {
    _mm256_and_pd(_mm256_cmp_pd::<_CMP_GT_OQ>(x, limit), y)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn reverse(x: V) -> V {
    _mm256_permute4x64_pd::<0b00_01_10_11>(x)
}

/// The roots of two nodes, each in two neighbouring lanes.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn two_nodes(from: &[f64; 2]) -> V {
    _mm256_setr_pd(from[0], from[0], from[1], from[1])
}

/// Lower halves of both, then upper halves. Its own inverse.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn exchange_halves(a: V, b: V) -> (V, V) {
    (_mm256_permute2f128_pd::<0x20>(a, b), _mm256_permute2f128_pd::<0x31>(a, b))
}

/// Even elements of both interleaved, then odd ones. Its own inverse.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn exchange_parity(a: V, b: V) -> (V, V) {
    (opaque(_mm256_unpacklo_pd(a, b)), _mm256_unpackhi_pd(a, b))
}

/// `x`, of which the compiler forgets where it came from: a sum and a difference of what
/// [`exchange_parity`] returns it would make horizontal ones, which take twice as long.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn opaque(mut x: V) -> V {
    // SAFETY: no instruction, only a register that is said to be written.
    unsafe {
        core::arch::asm!("/* {} */", inout(ymm_reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    x
}
