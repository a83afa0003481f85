//! Exact arithmetic on residues in `[0, q)`, without branches on them.

use crate::error::ArithError;

/// Transforms, conversions and vector kernels take moduli below `2^50`: four times a residue fits
/// the 52 bits of an integer multiply-add lane, and eight times the 53 bits of a double.
pub const KERNEL_BITS: u32 = 50;

/// A modulus `q` with `2 <= q < 2^62` and what Barrett reduction needs.
///
/// Operations take residues in `[0, q)` unless they say otherwise. None branches on a residue, so
/// they may be used on secrets; [`Modulus::inv`] and [`Modulus::pow`]'s exponent are the
/// exceptions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Modulus {
    value: u64,
    bits: u32,
    /// `floor(2^(2 bits) / q)`, for products of two residues.
    barrett: u64,
    /// `floor(2^64 / q)`, for single words.
    word: u64,
    /// `2^64 mod q`.
    radix: u64,
}

/// A fixed factor `w` with `floor(w 2^64 / q)` beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shoup {
    /// The factor, in `[0, q)`.
    pub value: u64,
    /// `floor(value 2^64 / q)`.
    pub quotient: u64,
}

#[inline(always)]
fn high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// `x` in `[0, 2q)` to `[0, q)`: when `x < q` the difference wraps to a huge number and the minimum
/// keeps `x`.
#[inline(always)]
fn once(x: u64, q: u64) -> u64 {
    x.min(x.wrapping_sub(q))
}

impl Modulus {
    /// Checks the range and prepares the constants.
    ///
    /// # Errors
    /// [`ArithError::Modulus`] unless `2 <= value < 2^62`.
    pub fn new(value: u64) -> Result<Self, ArithError> {
        if !(2..1 << 62).contains(&value) {
            return Err(ArithError::Modulus { value, expected: "2 <= q < 2^62" });
        }
        // For q a power of two, `bits` counts the bits of q itself, so a product of residues still
        // is below 2^(2 bits).
        let bits = 64 - value.leading_zeros();
        Ok(Modulus {
            value,
            bits,
            barrett: ((1u128 << (2 * bits)) / u128::from(value)) as u64,
            word: ((1u128 << 64) / u128::from(value)) as u64,
            radix: ((1u128 << 64) % u128::from(value)) as u64,
        })
    }

    /// The modulus itself.
    #[inline(always)]
    pub fn value(&self) -> u64 {
        self.value
    }

    /// The number of bits of the modulus.
    #[inline(always)]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Any word to `[0, q)`.
    #[inline(always)]
    pub fn reduce(&self, x: u64) -> u64 {
        // The quotient estimate is at most one too small: floor(2^64/q) is short by less than 1 and
        // x < 2^64.
        once(x.wrapping_sub(high(x, self.word).wrapping_mul(self.value)), self.value)
    }

    /// Any double word to `[0, q)`.
    #[inline(always)]
    pub fn reduce_u128(&self, x: u128) -> u64 {
        let top = self.reduce((x >> 64) as u64);
        self.add(self.mul(top, self.radix), self.reduce(x as u64))
    }

    /// `a + b`.
    #[inline(always)]
    pub fn add(&self, a: u64, b: u64) -> u64 {
        once(a + b, self.value)
    }

    /// `a - b`.
    #[inline(always)]
    pub fn sub(&self, a: u64, b: u64) -> u64 {
        let d = a.wrapping_sub(b);
        d.min(d.wrapping_add(self.value))
    }

    /// `-a`.
    #[inline(always)]
    pub fn neg(&self, a: u64) -> u64 {
        once(self.value - a, self.value)
    }

    /// `a b`.
    #[inline(always)]
    pub fn mul(&self, a: u64, b: u64) -> u64 {
        // Barrett: with k = bits, both truncations together lose less than 3, hence two conditional
        // subtractions.
        let x = u128::from(a) * u128::from(b);
        let estimate = (u128::from((x >> (self.bits - 1)) as u64) * u128::from(self.barrett))
            >> (self.bits + 1);
        let r = (x as u64).wrapping_sub((estimate as u64).wrapping_mul(self.value));
        once(once(r, 2 * self.value), self.value)
    }

    /// `base^exponent`, with `base` any word. The running time depends on the exponent only.
    pub fn pow(&self, base: u64, mut exponent: u64) -> u64 {
        let mut square = self.reduce(base);
        let mut result = self.reduce(1);
        while exponent != 0 {
            if exponent & 1 == 1 {
                result = self.mul(result, square);
            }
            square = self.mul(square, square);
            exponent >>= 1;
        }
        result
    }

    /// The inverse of `a` (any word), if it is coprime to `q`. Variable time: for public numbers.
    pub fn inv(&self, a: u64) -> Option<u64> {
        let (mut r0, mut r1) = (self.value as i128, i128::from(self.reduce(a)));
        let (mut s0, mut s1) = (0i128, 1i128);
        while r1 != 0 {
            let t = r0 / r1;
            (r0, r1) = (r1, r0 - t * r1);
            (s0, s1) = (s1, s0 - t * s1);
        }
        (r0 == 1).then(|| s0.rem_euclid(i128::from(self.value)) as u64)
    }

    /// A signed integer to `[0, q)`.
    #[inline(always)]
    pub fn from_i64(&self, x: i64) -> u64 {
        let magnitude = self.reduce(x.unsigned_abs());
        let negated = self.neg(magnitude);
        let mask = (x >> 63) as u64;
        (magnitude & !mask) | (negated & mask)
    }

    /// A residue to its representative in `(-q/2, q/2]`.
    #[inline(always)]
    pub fn to_centered(&self, a: u64) -> i64 {
        let mask = ((self.value / 2).wrapping_sub(a) as i64) >> 63;
        (a as i64).wrapping_sub(self.value as i64 & mask)
    }

    /// What the kernels need to centre residues as doubles: no ties, and quotients that round
    /// right.
    ///
    /// # Panics
    /// When the modulus is even, or not below `2^50`.
    pub(crate) fn assert_centred(&self) {
        assert!(self.value % 2 == 1, "expected an odd modulus, got {}", self.value);
        assert!(self.value >> KERNEL_BITS == 0, "expected a modulus below 2^50");
    }

    /// Prepares a fixed factor.
    pub fn shoup(&self, value: u64) -> Shoup {
        let value = self.reduce(value);
        Shoup { value, quotient: ((u128::from(value) << 64) / u128::from(self.value)) as u64 }
    }

    /// `x w` to `[0, q)`, with `x` any word.
    #[inline(always)]
    pub fn mul_shoup(&self, x: u64, w: &Shoup) -> u64 {
        once(self.mul_shoup_lazy(x, w), self.value)
    }

    /// `x w` to `[0, 2q)`, with `x` any word.
    #[inline(always)]
    pub fn mul_shoup_lazy(&self, x: u64, w: &Shoup) -> u64 {
        // quotient is short by less than 1, so the estimate by less than x/2^64 + 1 < 2.
        let estimate = high(x, w.quotient);
        x.wrapping_mul(w.value).wrapping_sub(estimate.wrapping_mul(self.value))
    }
}
