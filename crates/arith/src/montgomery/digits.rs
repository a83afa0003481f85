//! Converts numbers from 64-bit words to a back-end's limbs and back. Time depends on lengths only.

use crate::backend::operands::montgomery::LimbFormat;

/// The number in `words` as `out.len()` limbs, as the back-end stores them.
pub(super) fn to_limbs(format: &LimbFormat, words: &[u64], out: &mut [u64]) {
    let mask = (1u64 << format.radix) - 1;
    let half = 1i64 << (format.radix - 1);
    let (mut held, mut bits, mut rest) = (0u128, 0, words.iter());
    let mut carry = 0i64;
    for out in out.iter_mut() {
        if bits < format.radix {
            held |= u128::from(rest.next().copied().unwrap_or(0)) << bits;
            bits += 64;
        }
        let mut limb = (held as u64 & mask) as i64 + carry;
        held >>= format.radix;
        bits -= format.radix;
        if format.signed {
            // A limb of half the radix or more becomes negative and adds one to the next.
            carry = (limb + half) >> format.radix;
            limb -= carry << format.radix;
        }
        *out = (format.encode)(limb);
    }
}

/// The number in stored `limbs` as `out.len()` words, two's complement.
pub(super) fn to_words(format: &LimbFormat, limbs: &[u64], out: &mut [u64]) {
    let (mut held, mut bits) = (0i128, 0);
    let mut limbs = limbs.iter().map(|&limb| (format.decode)(limb));
    for out in out.iter_mut() {
        while bits < 64 {
            match limbs.next() {
                Some(limb) => held += i128::from(limb) << bits,
                None => {
                    bits = 64;
                    break;
                }
            }
            bits += format.radix;
        }
        *out = held as u64;
        held >>= 64;
        bits -= 64;
    }
}

/// `a + b + carry` in place, and the carry out.
pub(super) fn add_assign(a: &mut [u64], b: &[u64], mut carry: u64) -> u64 {
    for (at, a) in a.iter_mut().enumerate() {
        let sum = u128::from(*a) + u128::from(b.get(at).copied().unwrap_or(0)) + u128::from(carry);
        *a = sum as u64;
        carry = (sum >> 64) as u64;
    }
    carry
}

/// `a - (b & mask)` in place, and whether it fell below zero.
pub(super) fn sub_masked(a: &mut [u64], b: &[u64], mask: u64) -> u64 {
    let mut borrow = 0;
    for (at, a) in a.iter_mut().enumerate() {
        let (difference, low) = a.overflowing_sub(b.get(at).copied().unwrap_or(0) & mask);
        let (difference, lower) = difference.overflowing_sub(borrow);
        *a = difference;
        borrow = u64::from(low) | u64::from(lower);
    }
    borrow
}

/// Brings `value`, two's complement in `[-n, 2n)` with a word to spare, into `[0, n)`; what was
/// added to or taken from the next digit for it: -1, 0 or 1. `spare` is as long as `value`.
pub(super) fn settle(value: &mut [u64], n: &[u64], spare: &mut [u64]) -> i64 {
    let negative = 0u64.wrapping_sub(value[value.len() - 1] >> 63);
    let mut carry = 0;
    for (at, word) in value.iter_mut().enumerate() {
        let sum = u128::from(*word)
            + u128::from(n.get(at).copied().unwrap_or(0) & negative)
            + u128::from(carry);
        *word = sum as u64;
        carry = (sum >> 64) as u64;
    }
    spare.copy_from_slice(value);
    let below = 0u64.wrapping_sub(sub_masked(spare, n, u64::MAX));
    for (value, spare) in value.iter_mut().zip(spare.iter()) {
        *value = (*value & below) | (spare & !below);
    }
    negative as i64 + (!below & 1) as i64
}

/// Whether `a < b`, for numbers of one length.
pub(super) fn less(a: &[u64], b: &[u64]) -> bool {
    let mut borrow = false;
    for (a, b) in a.iter().zip(b) {
        let (difference, low) = a.overflowing_sub(*b);
        let (_, lower) = difference.overflowing_sub(u64::from(borrow));
        borrow = low || lower;
    }
    borrow
}

/// The number of bits of a number.
pub(super) fn bit_length(words: &[u64]) -> u32 {
    words
        .iter()
        .rposition(|&word| word != 0)
        .map_or(0, |top| 64 * (top as u32 + 1) - words[top].leading_zeros())
}

/// `bits` bits of an exponent from bit `start` on; zero beyond its end.
pub(super) fn window(exponent: &[u64], start: usize, bits: u32) -> u64 {
    let word = |at: usize| u128::from(exponent.get(at).copied().unwrap_or(0));
    let pair = word(start / 64) | word(start / 64 + 1) << 64;
    (pair >> (start % 64)) as u64 & ((1 << bits) - 1)
}
