//! Big integers: naturals of any length enter, sums, products and inverses leave. Both sides.
//!
//! Thin names over [`crypto_bigint::BoxedUint`]. What is not called `_vartime` takes a time that
//! depends on lengths, and on the value of a divisor, but on no other value.

use crypto_bigint::{BoxedUint, ConcatenatingMul, Gcd, NonZero, Resize};
use zeroize::Zeroize;

/// The number of little-endian `words`.
pub(crate) fn from_words(words: &[u64]) -> BoxedUint {
    BoxedUint::from_words(words.iter().copied())
}

/// The lowest `count` words, padded with zeros.
pub(crate) fn to_words(value: &BoxedUint, count: usize) -> Vec<u64> {
    let mut words = value.as_words().to_vec();
    words.resize(count, 0);
    words
}

/// The number of little-endian `bytes`.
pub(crate) fn from_bytes(bytes: &[u8]) -> BoxedUint {
    let mut words = vec![0; bytes.len().div_ceil(8).max(1)];
    read_bytes(bytes, &mut words);
    let value = from_words(&words);
    words.zeroize();
    value
}

/// The lowest `width` little-endian bytes, padded with zeros.
pub(crate) fn to_bytes(value: &BoxedUint, width: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(width + 8);
    write_bytes(value.as_words(), width, &mut bytes);
    bytes
}

/// The number of big-endian `bytes`.
pub(crate) fn from_big_endian(bytes: &[u8]) -> BoxedUint {
    let mut reversed: Vec<u8> = bytes.iter().rev().copied().collect();
    let value = from_bytes(&reversed);
    reversed.zeroize();
    value
}

/// Big-endian bytes without leading zeros.
pub(crate) fn to_big_endian(value: &BoxedUint) -> Vec<u8> {
    let mut bytes = to_bytes(value, value.bits_vartime().div_ceil(8) as usize);
    bytes.reverse();
    bytes
}

/// Fills `words` with little-endian `bytes`, padded with zeros.
pub(crate) fn read_bytes(bytes: &[u8], words: &mut [u64]) {
    words.fill(0);
    for (at, &byte) in bytes.iter().enumerate() {
        words[at / 8] |= u64::from(byte) << (8 * (at % 8));
    }
}

/// Appends the lowest `width` little-endian bytes of `words`, padded with zeros.
pub(crate) fn write_bytes(words: &[u64], width: usize, out: &mut Vec<u8>) {
    let end = out.len() + width;
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()).take(width));
    out.resize(end, 0);
}

/// The same number in exactly as many words as `bits` need.
pub(crate) fn resized(value: &BoxedUint, bits: u32) -> BoxedUint {
    value.resize_unchecked(bits)
}

/// A small number.
pub(crate) fn small(value: u64) -> BoxedUint {
    BoxedUint::from(value)
}

/// `left * right`, as wide as both together.
pub(crate) fn product(left: &BoxedUint, right: &BoxedUint) -> BoxedUint {
    left.concatenating_mul(right)
}

/// `left + right`, one word wider than the wider.
pub(crate) fn sum(left: &BoxedUint, right: &BoxedUint) -> BoxedUint {
    left.concatenating_add(right)
}

/// `base^exponent` in full; for small exponents.
pub(crate) fn raised(base: &BoxedUint, exponent: u32) -> BoxedUint {
    (0..exponent).fold(BoxedUint::one(), |power, _| trimmed(&product(&power, base)))
}

/// `base^exponent` modulo any `modulus`; for small exponents.
#[cfg(feature = "client")]
pub(crate) fn power_small(base: &BoxedUint, exponent: u32, modulus: &BoxedUint) -> BoxedUint {
    (0..exponent).fold(BoxedUint::one(), |power, _| product_mod(&power, base, modulus))
}

/// The number without leading zero words.
pub(crate) fn trimmed(value: &BoxedUint) -> BoxedUint {
    resized(value, value.bits_vartime().max(1))
}

/// Quotient and remainder.
///
/// # Panics
/// For a divisor of zero.
pub(crate) fn divided(value: &BoxedUint, divisor: &BoxedUint) -> (BoxedUint, BoxedUint) {
    value.div_rem_vartime(&non_zero(divisor))
}

/// `value` modulo `modulus`, as wide as the modulus.
///
/// # Panics
/// For a modulus of zero.
pub(crate) fn reduced(value: &BoxedUint, modulus: &BoxedUint) -> BoxedUint {
    value.rem_vartime(&non_zero(modulus))
}

/// `left * right` modulo `modulus`.
pub(crate) fn product_mod(left: &BoxedUint, right: &BoxedUint, modulus: &BoxedUint) -> BoxedUint {
    reduced(&product(left, right), modulus)
}

/// `left - right` modulo `modulus`, both below it.
pub(crate) fn difference_mod(
    left: &BoxedUint,
    right: &BoxedUint,
    modulus: &BoxedUint,
) -> BoxedUint {
    let bits = modulus.bits_precision();
    resized(left, bits).sub_mod(&resized(right, bits), &non_zero(modulus))
}

/// `base^exponent` modulo an odd `modulus`.
///
/// # Panics
/// For an even modulus.
#[cfg(feature = "client")]
pub(crate) fn power_mod(base: &BoxedUint, exponent: &BoxedUint, modulus: &BoxedUint) -> BoxedUint {
    resized(&reduced(base, modulus), modulus.bits_precision()).pow_mod(exponent, &odd(modulus))
}

/// The inverse of `value` modulo `modulus`, or `None` if they share a factor.
pub(crate) fn inverse_mod(value: &BoxedUint, modulus: &BoxedUint) -> Option<BoxedUint> {
    let value = resized(&reduced(value, modulus), modulus.bits_precision());
    value.invert_mod(&non_zero(modulus)).into_option()
}

/// The greatest common divisor.
pub(crate) fn gcd(left: &BoxedUint, right: &BoxedUint) -> BoxedUint {
    left.gcd(right)
}

/// Whether `value` is one.
pub(crate) fn is_one(value: &BoxedUint) -> bool {
    value.is_one().into()
}

/// The Jacobi symbol of a public `value` over a public odd `modulus`: -1, 0 or 1.
pub(crate) fn jacobi_vartime(value: &BoxedUint, modulus: &BoxedUint) -> i8 {
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
pub(crate) fn digits(value: &BoxedUint, base: &BoxedUint, count: usize, words: usize) -> Vec<u64> {
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
pub(crate) fn joined(digits: &[u64], base: &BoxedUint, words: usize) -> BoxedUint {
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

#[cfg(feature = "client")]
fn odd(value: &BoxedUint) -> crypto_bigint::Odd<BoxedUint> {
    value.to_odd().into_option().expect("the modulus is odd")
}

/// `left - right` modulo `modulus`, all in equally many words, both below the modulus.
pub(crate) fn difference_words(left: &[u64], right: &[u64], modulus: &[u64]) -> Vec<u64> {
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
pub(crate) fn borrowing(word: u64, less: u64, borrow: bool) -> (u64, bool) {
    let (difference, first) = word.overflowing_sub(less);
    let (difference, second) = difference.overflowing_sub(u64::from(borrow));
    (difference, first | second)
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::*;

    fn number(seed: u8, words: usize) -> BoxedUint {
        let mut out = vec![0; words];
        ciphervec_arith::Stream::new(&[seed; 32], 1).uniform_bits(64, &mut out);
        from_words(&out)
    }

    #[test]
    fn bytes_and_words_round_trip() {
        let value = number(1, 5);
        assert_eq!(from_bytes(&to_bytes(&value, 40)), value);
        assert_eq!(from_words(&to_words(&value, 7)), value);
        assert_eq!(to_bytes(&small(0x0102), 3), [2, 1, 0]);
        assert_eq!(from_bytes(&[1, 2, 0]), small(0x0201));
        assert_eq!(to_words(&from_bytes(&[]), 1), [0]);
    }

    #[test]
    fn digits_are_those_of_repeated_division() {
        let base = number(2, 3);
        let value = number(3, 11);
        let parts = digits(&value, &base, 4, 3);
        assert_eq!(joined(&parts, &base, 3), value);
        let (quotient, rest) = divided(&value, &base);
        assert_eq!(from_words(&parts[..3]), rest);
        assert_eq!(from_words(&parts[3..6]), divided(&quotient, &base).1);
    }

    #[test]
    fn small_cases_by_hand() {
        assert_eq!(inverse_mod(&small(3), &small(7)), Some(small(5)));
        assert_eq!(inverse_mod(&small(3), &small(16)), Some(small(11)));
        assert_eq!(inverse_mod(&small(6), &small(9)), None);
        assert_eq!(power_mod(&small(5), &small(3), &small(13)), small(8));
        assert_eq!(raised(&small(10), 30), from_words(&[0x4674_edea_4000_0000, 0xc_9f2c_9cd0]));
        assert_eq!(
            [jacobi_vartime(&small(2), &small(15)), jacobi_vartime(&small(7), &small(15))],
            [1, -1]
        );
        assert_eq!(jacobi_vartime(&small(5), &small(15)), 0);
        assert!(is_one(&gcd(&small(35), &small(12))));
    }
}
