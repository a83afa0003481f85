//! Montgomery products, four residues at a time, on doubles.

use core::arch::x86_64::*;
use core::arch::x86_64::{
    __m256d as V, __m256i as Words, _mm256_add_epi64 as add_words, _mm256_add_pd as add_doubles,
    _mm256_and_si256 as and, _mm256_castpd_si256 as as_words, _mm256_castsi256_pd as as_doubles,
    _mm256_fmadd_pd as fused, _mm256_set1_epi64x as set_word, _mm256_set1_pd as set_double,
    _mm256_setzero_si256 as zero_words, _mm256_slli_epi64 as shift_left,
    _mm256_sub_epi64 as sub_words, _mm256_sub_pd as sub_doubles, _mm256_xor_si256 as xor,
};

const WIDTH: usize = 4;
const RADIX: u32 = 52;
const TILE: usize = 2;
pub(crate) const FORMAT: LimbFormat =
    LimbFormat { radix: RADIX, width: WIDTH, tile: TILE, signed: true, encode, decode };

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load(limbs: &Limbs) -> V {
    // SAFETY: the reference covers 32 readable bytes; the load has no alignment.
    unsafe { _mm256_loadu_pd(limbs.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn store(limbs: &mut Limbs, limb: V) {
    // SAFETY: the reference covers 32 writable bytes; the store has no alignment.
    unsafe { _mm256_storeu_pd(limbs.as_mut_ptr().cast(), limb) }
}

/// `x >> SHIFT` for signed words, which AVX2 lacks.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn shift_right<const SHIFT: i32>(x: Words) -> Words {
    let positive = xor(x, set_word(i64::MIN));
    let shifted = _mm256_srli_epi64::<SHIFT>(positive);
    sub_words(shifted, set_word(1 << (63 - SHIFT)))
}

/// Where the index is that of the entry.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn equal(index: &Limbs, entry: u64) -> Words {
    _mm256_cmpeq_epi64(bits(index), same(entry))
}

/// `x` where the mask is set.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn merge(chosen: Words, mask: Words, x: Words) -> Words {
    _mm256_or_si256(chosen, _mm256_and_si256(x, mask))
}

crate::backend::shared::fma_limbs::fma_limbs!("avx2,fma");
crate::backend::montgomery_products::montgomery_products!(#[target_feature(enable = "avx2,fma")]);
