//! Two primes as one modulus: the key owner lifts a pair of residues to the centred integer, modulo
//! 2^64.

use crate::error::ArithError;
use crate::modulus::{Modulus, Shoup};
use crate::ntt::NttTable;

/// Two NTT primes `p0`, `p1` as one modulus `p0 p1` below `2^100`, enough for an exact convolution
/// that wraps mod 2^64.
#[derive(Clone, Debug)]
pub struct RnsPair {
    p0: u64,
    second: Modulus,
    /// `p0^-1 mod p1`.
    inverse: Shoup,
    product: u128,
}

impl RnsPair {
    /// Pairs the primes of two transforms.
    ///
    /// # Errors
    /// [`ArithError::Modulus`] when both tables have the same prime, [`ArithError::Degree`] when
    /// their degrees differ.
    pub fn new(first: &NttTable, second: &NttTable) -> Result<Self, ArithError> {
        if first.degree() != second.degree() {
            return Err(ArithError::Degree {
                degree: second.degree(),
                expected: "the degree of the first table",
            });
        }
        let (p0, p1) = (first.modulus().value(), *second.modulus());
        let inverse = p1.inv(p0).ok_or(ArithError::Modulus {
            value: p1.value(),
            expected: "a prime other than the first table's",
        })?;
        Ok(RnsPair {
            p0,
            second: p1,
            inverse: p1.shoup(inverse),
            product: u128::from(p0) * u128::from(p1.value()),
        })
    }

    /// For each pair of canonical residues the integer `x` with `-p0 p1 / 2 < x < p0 p1 / 2`, as
    /// `x mod 2^64`.
    ///
    /// # Panics
    /// When the three lengths differ.
    pub fn lift_wrapping(&self, r0: &[u64], r1: &[u64], out: &mut [u64]) {
        assert_eq!(r0.len(), out.len(), "first residues and output differ in length");
        assert_eq!(r1.len(), out.len(), "second residues and output differ in length");
        for ((x, &a), &b) in out.iter_mut().zip(r0).zip(r1) {
            *x = self.lift(a, b);
        }
    }

    /// Garner: `x = a + p0 t` with `t = (b - a) / p0 mod p1`, then the upper half of the range
    /// stands for negatives.
    #[inline(always)]
    fn lift(&self, a: u64, b: u64) -> u64 {
        let difference = self.second.sub(b, self.second.reduce(a));
        let t = self.second.mul_shoup(difference, &self.inverse);
        let x = u128::from(a) + u128::from(self.p0) * u128::from(t);
        // The product is odd, so no value lies exactly on the half.
        let negative = (((self.product / 2).wrapping_sub(x)) as i128 >> 127) as u64;
        (x as u64).wrapping_sub(self.product as u64 & negative)
    }
}
