//! Montgomery products: limbs of two residues in a register, as doubles.
//!
//! A product of two limbs in both lanes takes five instructions for 52 bits a limb; one of 60 bits
//! in words takes four for one residue, and processors have fewer multipliers for words.

use core::arch::aarch64::*;
use core::arch::aarch64::{
    float64x2_t as V, int64x2_t as Words, vaddq_f64 as add_doubles, vaddq_s64 as add_words,
    vandq_s64 as and, vdupq_n_f64 as set_double, vdupq_n_s64 as set_word, veorq_s64 as xor,
    vreinterpretq_f64_s64 as as_doubles, vreinterpretq_s64_f64 as as_words,
    vshlq_n_s64 as shift_left, vshrq_n_s64 as shift_right, vsubq_f64 as sub_doubles,
    vsubq_s64 as sub_words,
};

const WIDTH: usize = 2;
const RADIX: u32 = 52;
const TILE: usize = 2;
pub(crate) const FORMAT: LimbFormat =
    LimbFormat { radix: RADIX, width: WIDTH, tile: TILE, signed: true, encode, decode };

#[inline]
#[target_feature(enable = "neon")]
fn load(limbs: &Limbs) -> V {
    // SAFETY: the reference covers 16 readable bytes.
    unsafe { vld1q_f64(limbs.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(limbs: &mut Limbs, limb: V) {
    // SAFETY: the reference covers 16 writable bytes.
    unsafe { vst1q_f64(limbs.as_mut_ptr().cast(), limb) }
}

#[inline]
#[target_feature(enable = "neon")]
fn zero_words() -> Words {
    set_word(0)
}

#[inline]
#[target_feature(enable = "neon")]
fn fused(x: V, y: V, z: V) -> V {
    vfmaq_f64(z, x, y)
}

/// Where the index is that of the entry.
#[inline]
#[target_feature(enable = "neon")]
fn equal(index: &Limbs, entry: u64) -> Words {
    vreinterpretq_s64_u64(vceqq_s64(bits(index), same(entry)))
}

/// `x` where the mask is set.
#[inline]
#[target_feature(enable = "neon")]
fn merge(chosen: Words, mask: Words, x: Words) -> Words {
    vorrq_s64(chosen, and(x, mask))
}

crate::backend::shared::fma_limbs::fma_limbs!("neon");
crate::backend::montgomery_products::montgomery_products!(#[target_feature(enable = "neon")]);
