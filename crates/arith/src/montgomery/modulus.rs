//! An odd number and a power of it as the modulus, with all that Montgomery arithmetic precomputes.

use std::sync::Arc;

use super::digits::{add_assign, bit_length, less, sub_masked, to_limbs};
use super::group::{spread, wipe};
use crate::backend::Backend;
use crate::backend::dispatch;
use crate::backend::operands::montgomery::{LimbFormat, Reduction, Row};
use crate::error::ArithError;
use crypto_bigint::{BoxedUint, NonZero};
use zeroize::Zeroize;

/// Fewest bits of a modulus.
pub const MIN_BITS: u32 = 64;
/// Most bits of a modulus times its power.
pub const MAX_BITS: u32 = 12_288;
/// Most digits of an element.
pub const MAX_DIGITS: usize = 4;
/// Bits by which the limbs are longer than the modulus, so that digits may stay unreduced between
/// products.
const SLACK: u32 = 10;

/// Arithmetic in `Z/n^k` for odd `n`: elements are `k` digits in base `n`, least significant first.
///
/// Bound to the back-end that was current when it was made. Wiped on drop: the modulus may be
/// secret.
pub struct PowerModulus {
    pub(super) backend: Backend,
    pub(super) format: LimbFormat,
    pub(super) reduction: Reduction,
    modulus: Vec<u64>,
    bits: u32,
    digits: usize,
    /// `R^2`, the same in all lanes.
    pub(super) into: Vec<Row>,
    /// `R`, likewise: one in Montgomery form.
    pub(super) one: Vec<Row>,
}

impl core::fmt::Debug for PowerModulus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PowerModulus({} bits, power {}, redacted)", self.bits, self.digits)
    }
}

impl Drop for PowerModulus {
    fn drop(&mut self) {
        self.modulus.zeroize();
        self.reduction.modulus.zeroize();
        self.reduction.inverse.zeroize();
        self.reduction.offsets.iter_mut().for_each(Zeroize::zeroize);
        wipe(&mut self.into);
        wipe(&mut self.one);
    }
}

impl PowerModulus {
    /// Arithmetic modulo `modulus^digits`; `modulus` in 64-bit words, least significant first.
    ///
    /// # Errors
    /// [`ArithError::Wide`] unless the modulus is odd and of [`MIN_BITS`] bits or more, `digits` is
    /// `1..=`[`MAX_DIGITS`], and the power has at most [`MAX_BITS`] bits.
    pub fn new(modulus: &[u64], digits: usize) -> Result<Arc<PowerModulus>, ArithError> {
        let bits = bit_length(modulus);
        let refuse = |expected| Err(ArithError::Wide { bits, digits, expected });
        if !(1..=MAX_DIGITS).contains(&digits) {
            return refuse("1 to 4 digits");
        }
        if bits < MIN_BITS || bits as usize * digits > MAX_BITS as usize {
            return refuse("a modulus of 64 bits or more whose power has at most 12,288");
        }
        if modulus[0] & 1 == 0 {
            return refuse("an odd modulus");
        }
        let modulus = modulus[..(bits as usize).div_ceil(64)].to_vec();
        let backend = Backend::current();
        let format = dispatch::montgomery::limb_format(backend);
        let limbs = ((bits + SLACK).div_ceil(format.radix) as usize).next_multiple_of(format.tile);

        let mut n = vec![0; limbs];
        to_limbs(&format, &modulus, &mut n);
        // Newton's iteration: every step doubles the bits of 1/n, from the three that n itself
        // gives.
        let mut inverse = modulus[0];
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(modulus[0].wrapping_mul(inverse)));
        }
        let mut digit = [0; 1];
        let mask = (1 << format.radix) - 1;
        to_limbs(&format, &[inverse.wrapping_neg() & mask], &mut digit);

        let shift = format.radix as usize * limbs;
        let mut power = vec![0; digits * modulus.len()];
        power[0] = 1;
        (0..shift).for_each(|_| twice(&mut power, &modulus));
        let group = |element: &[u64]| {
            let mut stored = vec![0; digits * limbs];
            for (digit, stored) in element.chunks(modulus.len()).zip(stored.chunks_mut(limbs)) {
                to_limbs(&format, digit, stored);
            }
            spread(format.width, &stored)
        };
        let one = group(&power);
        let offsets = (!format.signed).then(|| offsets(&format, &modulus, limbs)).flatten();
        (0..shift).for_each(|_| twice(&mut power, &modulus));
        let into = group(&power);
        let reduction = Reduction {
            digits,
            limbs,
            modulus: n,
            inverse: digit[0],
            offsets: offsets.unwrap_or_default(),
        };
        Ok(Arc::new(PowerModulus { backend, format, reduction, modulus, bits, digits, into, one }))
    }

    /// The base `n`, least significant word first.
    pub fn modulus(&self) -> &[u64] {
        &self.modulus
    }

    /// Bits of `n`.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Digits of an element: the power `k`.
    pub fn digits(&self) -> usize {
        self.digits
    }

    /// 64-bit words of a digit.
    pub fn words(&self) -> usize {
        self.modulus.len()
    }

    /// 64-bit words of an element: one digit after the other.
    pub fn element_words(&self) -> usize {
        self.digits * self.modulus.len()
    }

    /// Rows of a group of eight elements.
    pub(super) fn rows(&self) -> usize {
        self.digits * self.reduction.limbs
    }

    /// Whether two moduli are the same number, power and representation.
    pub(super) fn same(&self, other: &PowerModulus) -> bool {
        self.digits == other.digits
            && self.backend == other.backend
            && self.modulus == other.modulus
    }

    /// Whether every digit of an element is below `n`.
    pub(super) fn is_canonical(&self, element: &[u64]) -> bool {
        element.chunks(self.words()).all(|digit| less(digit, &self.modulus))
    }
}

/// Doubles an element in place.
fn twice(element: &mut [u64], n: &[u64]) {
    let mut carry = 0;
    for digit in element.chunks_mut(n.len()) {
        let copy = digit.to_vec();
        let above = add_assign(digit, &copy, carry);
        carry = above | u64::from(!less(digit, n));
        sub_masked(digit, n, 0u64.wrapping_sub(carry));
    }
}

/// `c n - R` and `c (n - 1) - R` for `c = ceil(R / (n - 1))`, in limbs that are all at least the
/// radix less one: each is lent a radix by the next, and the last of the debts is paid with the `R`
/// that was left out.
fn offsets(format: &LimbFormat, n: &[u64], limbs: usize) -> Option<[Vec<u64>; 2]> {
    let bits = format.radix as usize * limbs;
    let mut power = vec![0; bits / 64 + 1];
    power[bits / 64] = 1 << (bits % 64);
    let length = power.len() as u32 * 64;
    let mut below = n.to_vec();
    below[0] -= 1;
    below.resize(power.len(), 0);
    let below = NonZero::new(BoxedUint::from_words(below)).into_option()?;
    let (mut quotient, rest) = BoxedUint::from_words(power).div_rem(&below);
    let mut second = BoxedUint::zero_with_precision(length);
    if bool::from(rest.is_nonzero()) {
        quotient = quotient.wrapping_add(BoxedUint::one_with_precision(length));
        second = below.as_ref().wrapping_sub(&rest);
    }
    let first = second.wrapping_add(&quotient);
    Some([first, second].map(|offset| {
        let mut words = vec![0; limbs];
        to_limbs(format, offset.as_words(), &mut words);
        for (at, word) in words.iter_mut().enumerate() {
            *word += (1 << format.radix) - u64::from(at > 0);
        }
        words
    }))
}
