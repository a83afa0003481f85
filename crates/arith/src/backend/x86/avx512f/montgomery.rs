//! Montgomery products, eight residues at a time, on doubles.

use core::arch::x86_64::*;
use core::arch::x86_64::{
    __m512d as V, __m512i as Words, _mm512_add_epi64 as add_words, _mm512_add_pd as add_doubles,
    _mm512_and_si512 as and, _mm512_castpd_si512 as as_words, _mm512_castsi512_pd as as_doubles,
    _mm512_fmadd_pd as fused, _mm512_set1_epi64 as set_word, _mm512_set1_pd as set_double,
    _mm512_setzero_si512 as zero_words, _mm512_slli_epi64 as shift_left,
    _mm512_sub_epi64 as sub_words, _mm512_sub_pd as sub_doubles, _mm512_xor_si512 as xor,
};

const WIDTH: usize = 8;
const RADIX: u32 = 52;
const TILE: usize = 4;
pub(crate) const FORMAT: LimbFormat =
    LimbFormat { radix: RADIX, width: WIDTH, tile: TILE, signed: true, encode, decode };

#[inline]
#[target_feature(enable = "avx512f")]
fn load(limbs: &Limbs) -> V {
    // SAFETY: the reference covers 64 readable bytes; the load has no alignment.
    unsafe { _mm512_loadu_pd(limbs.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(limbs: &mut Limbs, limb: V) {
    // SAFETY: the reference covers 64 writable bytes; the store has no alignment.
    unsafe { _mm512_storeu_pd(limbs.as_mut_ptr().cast(), limb) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn shift_right<const SHIFT: u32>(x: Words) -> Words {
    _mm512_srai_epi64::<SHIFT>(x)
}

/// Where the index is that of the entry.
#[inline]
#[target_feature(enable = "avx512f")]
fn equal(index: &Limbs, entry: u64) -> __mmask8 {
    _mm512_cmpeq_epi64_mask(bits(index), same(entry))
}

/// `x` where the mask is set.
#[inline]
#[target_feature(enable = "avx512f")]
fn merge(chosen: Words, mask: __mmask8, x: Words) -> Words {
    _mm512_mask_mov_epi64(chosen, mask, x)
}

crate::backend::shared::fma_limbs::fma_limbs!("avx512f");
crate::backend::montgomery_products::montgomery_products!(#[target_feature(enable = "avx512f")]);
