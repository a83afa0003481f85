//! Arithmetic on naturals of any length.
//!
//! Thin names over [`crypto_bigint::BoxedUint`]. What is not called `_vartime` takes a time that
//! depends on lengths, and on the value of a divisor, but on no other value.

use crypto_bigint::{BoxedUint, ConcatenatingMul, Gcd, NonZero, Resize};
use zeroize::Zeroize;

/// The number of little-endian `words`.
pub fn from_words(words: &[u64]) -> BoxedUint {
    BoxedUint::from_words(words.iter().copied())
}

/// The lowest `count` words, padded with zeros.
pub fn to_words(value: &BoxedUint, count: usize) -> Vec<u64> {
    let mut words = value.as_words().to_vec();
    words.resize(count, 0);
    words
}

/// The number of little-endian `bytes`.
pub fn from_bytes(bytes: &[u8]) -> BoxedUint {
    let mut words = vec![0; bytes.len().div_ceil(8).max(1)];
    read_bytes(bytes, &mut words);
    let value = from_words(&words);
    words.zeroize();
    value
}

/// The lowest `width` little-endian bytes, padded with zeros.
pub fn to_bytes(value: &BoxedUint, width: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(width + 8);
    write_bytes(value.as_words(), width, &mut bytes);
    bytes
}

/// The number of big-endian `bytes`.
pub fn from_big_endian(bytes: &[u8]) -> BoxedUint {
    let mut reversed: Vec<u8> = bytes.iter().rev().copied().collect();
    let value = from_bytes(&reversed);
    reversed.zeroize();
    value
}

/// Big-endian bytes without leading zeros.
pub fn to_big_endian(value: &BoxedUint) -> Vec<u8> {
    let mut bytes = to_bytes(value, value.bits_vartime().div_ceil(8) as usize);
    bytes.reverse();
    bytes
}

/// Fills `words` with little-endian `bytes`, padded with zeros.
pub fn read_bytes(bytes: &[u8], words: &mut [u64]) {
    words.fill(0);
    for (at, &byte) in bytes.iter().enumerate() {
        words[at / 8] |= u64::from(byte) << (8 * (at % 8));
    }
}

/// Appends the lowest `width` little-endian bytes of `words`, padded with zeros.
pub fn write_bytes(words: &[u64], width: usize, out: &mut Vec<u8>) {
    let end = out.len() + width;
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()).take(width));
    out.resize(end, 0);
}

/// The same number in exactly as many words as `bits` need.
pub fn resized(value: &BoxedUint, bits: u32) -> BoxedUint {
    value.resize_unchecked(bits)
}

/// A small number.
pub fn small(value: u64) -> BoxedUint {
    BoxedUint::from(value)
}

/// `left * right`, as wide as both together.
pub fn product(left: &BoxedUint, right: &BoxedUint) -> BoxedUint {
    left.concatenating_mul(right)
}

/// `left + right`, one word wider than the wider.
pub fn sum(left: &BoxedUint, right: &BoxedUint) -> BoxedUint {
    left.concatenating_add(right)
}

/// `base^exponent` in full; for small exponents.
pub fn raised(base: &BoxedUint, exponent: u32) -> BoxedUint {
    (0..exponent).fold(BoxedUint::one(), |power, _| trimmed(&product(&power, base)))
}

/// The number without leading zero words.
pub fn trimmed(value: &BoxedUint) -> BoxedUint {
    resized(value, value.bits_vartime().max(1))
}

/// Quotient and remainder.
///
/// # Panics
/// For a divisor of zero.
pub fn divided(value: &BoxedUint, divisor: &BoxedUint) -> (BoxedUint, BoxedUint) {
    value.div_rem_vartime(&non_zero(divisor))
}

/// `value` modulo `modulus`, as wide as the modulus.
///
/// # Panics
/// For a modulus of zero.
pub fn reduced(value: &BoxedUint, modulus: &BoxedUint) -> BoxedUint {
    value.rem_vartime(&non_zero(modulus))
}

/// `left * right` modulo `modulus`.
pub fn product_mod(left: &BoxedUint, right: &BoxedUint, modulus: &BoxedUint) -> BoxedUint {
    reduced(&product(left, right), modulus)
}

/// `left - right` modulo `modulus`, both below it.
pub fn difference_mod(left: &BoxedUint, right: &BoxedUint, modulus: &BoxedUint) -> BoxedUint {
    let bits = modulus.bits_precision();
    resized(left, bits).sub_mod(&resized(right, bits), &non_zero(modulus))
}

/// The inverse of `value` modulo `modulus`, or `None` if they share a factor.
pub fn inverse_mod(value: &BoxedUint, modulus: &BoxedUint) -> Option<BoxedUint> {
    let value = resized(&reduced(value, modulus), modulus.bits_precision());
    value.invert_mod(&non_zero(modulus)).into_option()
}

/// The greatest common divisor.
pub fn gcd(left: &BoxedUint, right: &BoxedUint) -> BoxedUint {
    left.gcd(right)
}

/// Whether `value` is one.
pub fn is_one(value: &BoxedUint) -> bool {
    value.is_one().into()
}

/// The Jacobi symbol of a public `value` over a public odd `modulus`: -1, 0 or 1.
pub fn jacobi_vartime(value: &BoxedUint, modulus: &BoxedUint) -> i8 {
    let (mut top, mut bottom, mut sign) = (reduced(value, modulus), trimmed(modulus), 1);
    while top.is_nonzero().into() {
        let twos = top.trailing_zeros();
        top = trimmed(&top.shr(twos));
        let (low_top, low_bottom) = (top.as_words()[0], bottom.as_words()[0]);
        // (2 / b) is -1 for b = 3, 5 modulo 8; reciprocity flips the sign when both are 3 modulo 4.
        if twos % 2 == 1 && matches!(low_bottom % 8, 3 | 5) {
            sign = -sign;
        }
        if low_top % 4 == 3 && low_bottom % 4 == 3 {
            sign = -sign;
        }
        (top, bottom) = (reduced(&bottom, &top), top);
    }
    if is_one(&bottom) { sign } else { 0 }
}

/// The lowest `count` digits of `value` in base `base`, each of `words` words, least significant
/// first.
pub fn digits(value: &BoxedUint, base: &BoxedUint, count: usize, words: usize) -> Vec<u64> {
    let mut out = Vec::with_capacity(count * words);
    let mut rest = value.clone();
    for at in 0..count {
        let (quotient, digit) = divided(&rest, base);
        rest.zeroize();
        out.extend(to_words(&digit, words));
        // The quotient is shorter by the base: dropping its zero words keeps later divisions short.
        let left = (count - 1 - at).max(1) as u32 * base.bits_precision();
        rest = resized(&quotient, left.min(quotient.bits_precision()));
    }
    rest.zeroize();
    out
}

/// The number with these digits in base `base`.
///
/// # Panics
/// For no digit at all.
pub fn joined(digits: &[u64], base: &BoxedUint, words: usize) -> BoxedUint {
    let mut digits = digits.rchunks_exact(words).map(from_words);
    let highest = digits.next().expect("a number has a digit");
    digits.fold(highest, |value, digit| {
        // value * base + digit stays below base^k, so the product has room for the sum.
        product(&value, base).wrapping_add(&digit)
    })
}

/// `value` as a divisor.
///
/// # Panics
/// For zero.
fn non_zero(value: &BoxedUint) -> NonZero<BoxedUint> {
    value.to_nz().into_option().expect("a modulus is not zero")
}

/// `left - right` modulo `modulus`, all in equally many words, both below the modulus.
pub fn difference_words(left: &[u64], right: &[u64], modulus: &[u64]) -> Vec<u64> {
    let mut borrow = false;
    let mut out: Vec<u64> = left
        .iter()
        .zip(right)
        .map(|(&word, &less)| {
            let difference;
            (difference, borrow) = borrowing(word, less, borrow);
            difference
        })
        .collect();
    let mask = 0u64.wrapping_sub(u64::from(borrow));
    let mut carry = false;
    for (word, &more) in out.iter_mut().zip(modulus) {
        let (sum, first) = word.overflowing_add(more & mask);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        (*word, carry) = (sum, first | second);
    }
    out
}

#[inline(always)]
pub fn borrowing(word: u64, less: u64, borrow: bool) -> (u64, bool) {
    let (difference, first) = word.overflowing_sub(less);
    let (difference, second) = difference.overflowing_sub(u64::from(borrow));
    (difference, first | second)
}
