//! Limbs of residues enter, their Montgomery products leave; four at a time, signed limbs in base `2^52` held as doubles.
//!
//! Limbs lie in `[-2^51, 2^51)`, so a product is at most `2^102` and `1.5 2^103 + ab` has a unit in the last place of
//! `2^51`: a fused multiply-add rounds `ab` to `h 2^51`, and a second one gives the rest, at most `2^50`, exactly. Both
//! are taken as the integers that their bit patterns are, up to a constant per product that is subtracted once a column.

use core::arch::x86_64::*;

pub(crate) const WIDTH: usize = 4;
pub(crate) const RADIX: u32 = 52;
pub(crate) const TILE: usize = 2;

type V = __m256d;

/// The sum `low + 2^51 high`.
#[derive(Clone, Copy)]
struct Acc {
    low: __m256i,
    high: __m256i,
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
#[target_feature(enable = "avx2,fma")]
fn zero() -> Acc {
    Acc { low: _mm256_setzero_si256(), high: _mm256_setzero_si256() }
}

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

#[inline]
#[target_feature(enable = "avx2,fma")]
fn splat(word: u64) -> V {
    _mm256_set1_pd(f64::from_bits(word))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn multiply(acc: &mut Acc, a: V, b: V) {
    let high = _mm256_fmadd_pd(a, b, _mm256_set1_pd(HIGH));
    let rest = _mm256_sub_pd(_mm256_set1_pd(HIGH + LOW), high);
    let low = _mm256_fmadd_pd(a, b, rest);
    acc.high = _mm256_add_epi64(acc.high, _mm256_castpd_si256(high));
    acc.low = _mm256_add_epi64(acc.low, _mm256_castpd_si256(low));
}

/// Takes the constants of `count` products out of a column.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn unbias(acc: &mut Acc, count: u64) {
    let low = count.wrapping_mul(LOW.to_bits()) as i64;
    let high = count.wrapping_mul(HIGH.to_bits()) as i64;
    acc.low = _mm256_sub_epi64(acc.low, _mm256_set1_epi64x(low));
    acc.high = _mm256_sub_epi64(acc.high, _mm256_set1_epi64x(high));
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn double(acc: &mut Acc) {
    let copy = *acc;
    join(acc, &copy);
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn join(acc: &mut Acc, other: &Acc) {
    acc.low = _mm256_add_epi64(acc.low, other.low);
    acc.high = _mm256_add_epi64(acc.high, other.high);
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn subtract(acc: &mut Acc, limb: V) {
    let shifted = _mm256_castpd_si256(_mm256_add_pd(limb, _mm256_set1_pd(LOW)));
    let integer = _mm256_sub_epi64(shifted, _mm256_set1_epi64x(LOW.to_bits() as i64));
    acc.low = _mm256_sub_epi64(acc.low, integer);
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn add_word(acc: &mut Acc, word: u64) {
    acc.low = _mm256_add_epi64(acc.low, _mm256_set1_epi64x(word as i64));
}

/// Words to the number in `[-2^51, 2^51)` that they are congruent to modulo `2^52`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn centre(x: __m256i) -> __m256i {
    let low = _mm256_and_si256(x, _mm256_set1_epi64x(MASK));
    let sign = _mm256_set1_epi64x(SIGN);
    _mm256_sub_epi64(_mm256_xor_si256(low, sign), sign)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn to_double(x: __m256i) -> V {
    let shifted = _mm256_add_epi64(x, _mm256_set1_epi64x(LOW.to_bits() as i64));
    _mm256_sub_pd(_mm256_castsi256_pd(shifted), _mm256_set1_pd(LOW))
}

/// `x >> SHIFT` for signed words, which AVX2 lacks.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn shift_right<const SHIFT: i32>(x: __m256i) -> __m256i {
    let positive = _mm256_xor_si256(x, _mm256_set1_epi64x(i64::MIN));
    let shifted = _mm256_srli_epi64::<SHIFT>(positive);
    _mm256_sub_epi64(shifted, _mm256_set1_epi64x(1 << (63 - SHIFT)))
}

/// What a column holds, up to multiples of `2^52`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn low_bits(acc: &Acc) -> __m256i {
    let odd = _mm256_and_si256(acc.high, _mm256_set1_epi64x(1));
    _mm256_add_epi64(acc.low, _mm256_slli_epi64::<51>(odd))
}

/// The limb of a column and what it passes to the next one.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn carry(acc: Acc) -> (V, __m256i) {
    let sum = low_bits(&acc);
    let limb = centre(sum);
    let above = shift_right::<52>(_mm256_sub_epi64(sum, limb));
    (to_double(limb), _mm256_add_epi64(above, shift_right::<1>(acc.high)))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn pass(acc: &mut Acc, carry: __m256i) {
    acc.low = _mm256_add_epi64(acc.low, carry);
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn digit(acc: &Acc, inverse: V) -> V {
    let mut product = zero();
    multiply(&mut product, to_double(centre(low_bits(acc))), inverse);
    unbias(&mut product, 1);
    to_double(centre(low_bits(&product)))
}

/// No limb chosen yet.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn nothing() -> __m256i {
    _mm256_setzero_si256()
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn bits(limbs: &Limbs) -> __m256i {
    _mm256_castpd_si256(load(limbs))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn same(word: u64) -> __m256i {
    _mm256_set1_epi64x(word as i64)
}

/// Where the index is that of the entry.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn equal(index: &Limbs, entry: u64) -> __m256i {
    _mm256_cmpeq_epi64(bits(index), same(entry))
}

/// `x` where the mask is set.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn merge(chosen: __m256i, mask: __m256i, x: __m256i) -> __m256i {
    _mm256_or_si256(chosen, _mm256_and_si256(x, mask))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn keep(limbs: &mut Limbs, chosen: __m256i) {
    store(limbs, _mm256_castsi256_pd(chosen));
}

crate::backend::products::montgomery_products!(#[target_feature(enable = "avx2,fma")]);
