//! Products with one constant by Montgomery's method. Owner only.
//!
//! The modulus is secret.

use crate::biguint;
use crypto_bigint::BoxedUint;
use zeroize::Zeroize;

/// Multiplication by one constant modulo one odd modulus, by Montgomery's method. Wiped on drop.
pub(crate) struct Multiplier {
    modulus: Vec<u64>,
    /// -modulus^-1 modulo 2^64.
    negated_inverse: u64,
    /// constant * 2^(64 words) modulo the modulus.
    constant: Vec<u64>,
}

impl Drop for Multiplier {
    fn drop(&mut self) {
        self.modulus.zeroize();
        self.constant.zeroize();
    }
}

impl Multiplier {
    /// Multiplication by `constant` modulo an odd `modulus`.
    pub(crate) fn new(constant: &BoxedUint, modulus: &BoxedUint) -> Self {
        let modulus = biguint::trimmed(modulus);
        let words = modulus.as_words().len();
        let low = modulus.as_words()[0];
        // Newton: an odd number is its own inverse modulo 8, and every step doubles the bits.
        let inverse =
            (0..5).fold(low, |x, _| x.wrapping_mul(2u64.wrapping_sub(low.wrapping_mul(x))));
        let shift = biguint::raised(&biguint::small(1 << 32), 2 * words as u32);
        let constant = biguint::product_mod(constant, &shift, &modulus);
        Multiplier {
            negated_inverse: inverse.wrapping_neg(),
            constant: biguint::to_words(&constant, words),
            modulus: modulus.as_words().to_vec(),
        }
    }

    /// Words of the modulus.
    pub(crate) fn words(&self) -> usize {
        self.modulus.len()
    }

    /// `value * constant` modulo the modulus, for a value below the modulus in as many words.
    pub(crate) fn multiply(&self, value: &[u64]) -> Vec<u64> {
        let words = self.words();
        // sum stays below 2 * modulus * 2^64 inside a step, and below 2 * modulus after it.
        let mut sum = vec![0u64; words + 1];
        for &word in &value[..words] {
            let (mut high, mut carry) = (0u64, 0u64);
            let lowest = add_product(sum[0], word, self.constant[0], &mut high);
            let quotient = lowest.wrapping_mul(self.negated_inverse);
            add_product(lowest, quotient, self.modulus[0], &mut carry);
            for at in 1..words {
                let partial = add_product(sum[at], word, self.constant[at], &mut high);
                sum[at - 1] = add_product(partial, quotient, self.modulus[at], &mut carry);
            }
            let top = u128::from(sum[words]) + u128::from(high) + u128::from(carry);
            sum[words - 1] = top as u64;
            sum[words] = (top >> 64) as u64;
        }
        let top = sum.pop().unwrap_or(0);
        subtract_once(&mut sum, top, &self.modulus);
        sum
    }
}

/// `sum + a * b + carry`: the low word, the high one in `carry`.
#[inline(always)]
fn add_product(sum: u64, a: u64, b: u64, carry: &mut u64) -> u64 {
    let wide = u128::from(a) * u128::from(b) + u128::from(sum) + u128::from(*carry);
    *carry = (wide >> 64) as u64;
    wide as u64
}

/// Subtracts `modulus` if `value` with `top` as a further word is not below it.
fn subtract_once(value: &mut [u64], top: u64, modulus: &[u64]) {
    let mut borrow = false;
    for (&word, &less) in value.iter().zip(modulus) {
        (_, borrow) = biguint::borrowing(word, less, borrow);
    }
    let mask = 0u64.wrapping_sub(u64::from(top != 0 || !borrow));
    let mut borrow = false;
    for (word, &less) in value.iter_mut().zip(modulus) {
        (*word, borrow) = biguint::borrowing(*word, less & mask, borrow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(seed: u8, words: usize) -> BoxedUint {
        let mut out = vec![0; words];
        ciphervec_arith::Stream::new(&[seed; 32], 1).uniform_bits(64, &mut out);
        biguint::from_words(&out)
    }

    #[test]
    fn a_multiplier_agrees_with_division() {
        for words in [1, 2, 5, 16] {
            let mut modulus = number(4, words);
            modulus.as_mut_words()[0] |= 1;
            modulus.as_mut_words()[words - 1] |= 1 << 63;
            for (seed, edge) in [(5, None), (6, None), (0, Some(0)), (0, Some(1))] {
                let value = match edge {
                    None => biguint::reduced(&number(seed, words), &modulus),
                    Some(less) => modulus.wrapping_sub(biguint::small(1 + less)),
                };
                let constant = number(7 + seed, words);
                let multiplier = Multiplier::new(&constant, &modulus);
                let found = multiplier.multiply(&biguint::to_words(&value, words));
                assert_eq!(
                    biguint::from_words(&found),
                    biguint::product_mod(&value, &constant, &modulus)
                );
                let other = biguint::reduced(&constant, &modulus);
                let found = biguint::difference_words(
                    &biguint::to_words(&value, words),
                    &biguint::to_words(&other, words),
                    modulus.as_words(),
                );
                let expected = biguint::difference_mod(&value, &other, &modulus);
                assert_eq!(biguint::from_words(&found), expected);
            }
        }
    }
}
