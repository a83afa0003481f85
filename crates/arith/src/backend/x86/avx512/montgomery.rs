//! Montgomery products by IFMA, eight residues at a time, on limbs in base `2^52`.
//!
//! Digits lie in `[0, 2n)`, limbs in `[0, 2^52)`. A column sums fewer than `2^12` low halves and as
//! many high ones.

use core::arch::x86_64::*;

const WIDTH: usize = 8;
const RADIX: u32 = 52;
const TILE: usize = 4;
pub(crate) const FORMAT: LimbFormat =
    LimbFormat { radix: RADIX, width: WIDTH, tile: TILE, signed: false, encode, decode };

type V = __m512i;

/// The sum `low + 2^52 high`.
#[derive(Clone, Copy)]
struct Acc {
    low: __m512i,
    high: __m512i,
}

/// How a limb is stored.
fn encode(limb: i64) -> u64 {
    limb as u64
}

/// [`encode`], undone.
fn decode(word: u64) -> i64 {
    word as i64
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn zero() -> Acc {
    Acc { low: _mm512_setzero_si512(), high: _mm512_setzero_si512() }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn load(limbs: &Limbs) -> V {
    // SAFETY: the reference covers 64 readable bytes; the load has no alignment.
    unsafe { _mm512_loadu_si512(limbs.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn store(limbs: &mut Limbs, limb: V) {
    // SAFETY: the reference covers 64 writable bytes; the store has no alignment.
    unsafe { _mm512_storeu_si512(limbs.as_mut_ptr().cast(), limb) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn splat(word: u64) -> V {
    _mm512_set1_epi64(word as i64)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply(acc: &mut Acc, a: V, b: V) {
    acc.low = _mm512_madd52lo_epu64(acc.low, a, b);
    acc.high = _mm512_madd52hi_epu64(acc.high, a, b);
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn unbias(_: &mut Acc, _: u64) {}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn double(acc: &mut Acc) {
    let copy = *acc;
    join(acc, &copy);
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn join(acc: &mut Acc, other: &Acc) {
    acc.low = _mm512_add_epi64(acc.low, other.low);
    acc.high = _mm512_add_epi64(acc.high, other.high);
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn subtract(acc: &mut Acc, limb: V) {
    acc.low = _mm512_sub_epi64(acc.low, limb);
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn add_word(acc: &mut Acc, word: u64) {
    acc.low = _mm512_add_epi64(acc.low, _mm512_set1_epi64(word as i64));
}

/// The limb of a column and what it passes to the next one.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn carry(acc: Acc) -> (V, __m512i) {
    let limb = _mm512_and_si512(acc.low, _mm512_set1_epi64((1 << RADIX) - 1));
    (limb, _mm512_add_epi64(acc.high, _mm512_srli_epi64::<RADIX>(acc.low)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn pass(acc: &mut Acc, carry: __m512i) {
    acc.low = _mm512_add_epi64(acc.low, carry);
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn digit(acc: &Acc, inverse: V) -> V {
    _mm512_madd52lo_epu64(_mm512_setzero_si512(), acc.low, inverse)
}

/// No limb chosen yet.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn nothing() -> __m512i {
    _mm512_setzero_si512()
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn bits(limbs: &Limbs) -> __m512i {
    load(limbs)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn same(word: u64) -> __m512i {
    _mm512_set1_epi64(word as i64)
}

/// Where the index is that of the entry.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn equal(index: &Limbs, entry: u64) -> __mmask8 {
    _mm512_cmpeq_epi64_mask(bits(index), same(entry))
}

/// `x` where the mask is set.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn merge(chosen: __m512i, mask: __mmask8, x: __m512i) -> __m512i {
    _mm512_mask_mov_epi64(chosen, mask, x)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn keep(limbs: &mut Limbs, chosen: __m512i) {
    store(limbs, chosen);
}

crate::backend::montgomery_products::montgomery_products!(
    #[target_feature(enable = "avx512f,avx512ifma")]
);
