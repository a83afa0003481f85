//! Limbs of residues enter, their Montgomery products leave; eight at a time, signed limbs in base `2^52` held as doubles.
//!
//! The arithmetic is that of the AVX2 lanes, twice as wide and in twice as many registers.
//!
//! Limbs lie in `[-2^51, 2^51)`, so a product is at most `2^102` and `1.5 2^103 + ab` has a unit in the last place of
//! `2^51`: a fused multiply-add rounds `ab` to `h 2^51`, and a second one gives the rest, at most `2^50`, exactly. Both
//! are taken as the integers that their bit patterns are, up to a constant per product that is subtracted once a column.

use core::arch::x86_64::*;

pub(crate) const WIDTH: usize = 8;
pub(crate) const RADIX: u32 = 52;
pub(crate) const TILE: usize = 4;

type V = __m512d;

/// The sum `low + 2^51 high`.
#[derive(Clone, Copy)]
struct Acc {
    low: __m512i,
    high: __m512i,
}

/// `1.5 2^103`: one unit in the last place is `2^51`.
const HIGH: f64 = 1.5 * (1u128 << 103) as f64;
/// `1.5 2^52`: one unit in the last place is 1.
const LOW: f64 = 1.5 * (1u64 << 52) as f64;
const MASK: i64 = (1 << 52) - 1;
const SIGN: i64 = 1 << 51;

/// How a limb is stored.
pub(crate) fn encode(limb: i64) -> u64 {
    (limb as f64).to_bits()
}

/// [`encode`], undone.
pub(crate) fn decode(word: u64) -> i64 {
    f64::from_bits(word) as i64
}

#[inline]
#[target_feature(enable = "avx512f")]
fn zero() -> Acc {
    Acc { low: _mm512_setzero_si512(), high: _mm512_setzero_si512() }
}

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
fn splat(word: u64) -> V {
    _mm512_set1_pd(f64::from_bits(word))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn multiply(acc: &mut Acc, a: V, b: V) {
    let high = _mm512_fmadd_pd(a, b, _mm512_set1_pd(HIGH));
    let rest = _mm512_sub_pd(_mm512_set1_pd(HIGH + LOW), high);
    let low = _mm512_fmadd_pd(a, b, rest);
    acc.high = _mm512_add_epi64(acc.high, _mm512_castpd_si512(high));
    acc.low = _mm512_add_epi64(acc.low, _mm512_castpd_si512(low));
}

/// Takes the constants of `count` products out of a column.
#[inline]
#[target_feature(enable = "avx512f")]
fn unbias(acc: &mut Acc, count: u64) {
    let low = count.wrapping_mul(LOW.to_bits()) as i64;
    let high = count.wrapping_mul(HIGH.to_bits()) as i64;
    acc.low = _mm512_sub_epi64(acc.low, _mm512_set1_epi64(low));
    acc.high = _mm512_sub_epi64(acc.high, _mm512_set1_epi64(high));
}

#[inline]
#[target_feature(enable = "avx512f")]
fn double(acc: &mut Acc) {
    let copy = *acc;
    join(acc, &copy);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn join(acc: &mut Acc, other: &Acc) {
    acc.low = _mm512_add_epi64(acc.low, other.low);
    acc.high = _mm512_add_epi64(acc.high, other.high);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn subtract(acc: &mut Acc, limb: V) {
    let shifted = _mm512_castpd_si512(_mm512_add_pd(limb, _mm512_set1_pd(LOW)));
    let integer = _mm512_sub_epi64(shifted, _mm512_set1_epi64(LOW.to_bits() as i64));
    acc.low = _mm512_sub_epi64(acc.low, integer);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add_word(acc: &mut Acc, word: u64) {
    acc.low = _mm512_add_epi64(acc.low, _mm512_set1_epi64(word as i64));
}

/// Words to the number in `[-2^51, 2^51)` that they are congruent to modulo `2^52`.
#[inline]
#[target_feature(enable = "avx512f")]
fn centre(x: __m512i) -> __m512i {
    let low = _mm512_and_si512(x, _mm512_set1_epi64(MASK));
    let sign = _mm512_set1_epi64(SIGN);
    _mm512_sub_epi64(_mm512_xor_si512(low, sign), sign)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn to_double(x: __m512i) -> V {
    let shifted = _mm512_add_epi64(x, _mm512_set1_epi64(LOW.to_bits() as i64));
    _mm512_sub_pd(_mm512_castsi512_pd(shifted), _mm512_set1_pd(LOW))
}

/// What a column holds, up to multiples of `2^52`.
#[inline]
#[target_feature(enable = "avx512f")]
fn low_bits(acc: &Acc) -> __m512i {
    let odd = _mm512_and_si512(acc.high, _mm512_set1_epi64(1));
    _mm512_add_epi64(acc.low, _mm512_slli_epi64::<51>(odd))
}

/// The limb of a column and what it passes to the next one.
#[inline]
#[target_feature(enable = "avx512f")]
fn carry(acc: Acc) -> (V, __m512i) {
    let sum = low_bits(&acc);
    let limb = centre(sum);
    let above = _mm512_srai_epi64::<52>(_mm512_sub_epi64(sum, limb));
    (to_double(limb), _mm512_add_epi64(above, _mm512_srai_epi64::<1>(acc.high)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn pass(acc: &mut Acc, carry: __m512i) {
    acc.low = _mm512_add_epi64(acc.low, carry);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn digit(acc: &Acc, inverse: V) -> V {
    let mut product = zero();
    multiply(&mut product, to_double(centre(low_bits(acc))), inverse);
    unbias(&mut product, 1);
    to_double(centre(low_bits(&product)))
}

/// No limb chosen yet.
#[inline]
#[target_feature(enable = "avx512f")]
fn nothing() -> __m512i {
    _mm512_setzero_si512()
}

#[inline]
#[target_feature(enable = "avx512f")]
fn bits(limbs: &Limbs) -> __m512i {
    _mm512_castpd_si512(load(limbs))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn same(word: u64) -> __m512i {
    _mm512_set1_epi64(word as i64)
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
fn merge(chosen: __m512i, mask: __mmask8, x: __m512i) -> __m512i {
    _mm512_mask_mov_epi64(chosen, mask, x)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn keep(limbs: &mut Limbs, chosen: __m512i) {
    store(limbs, _mm512_castsi512_pd(chosen));
}

crate::backend::products::montgomery_products!(#[target_feature(enable = "avx512f")]);
