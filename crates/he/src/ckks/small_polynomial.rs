//! Small polynomial: a seed enters, residues of noise or a ternary secret leave. Both sides.
//!
//! All is wiped after use.

use super::params::Params;
use super::poly::{Coefficient, Ntt, Poly};
use ciphervec_arith::sample::Stream;
use ciphervec_arith::{Modulus, convert};
use core::ops::{Deref, DerefMut};
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// A polynomial of small integers.
pub(super) enum SmallPolynomial {
    Ternary(Zeroizing<Vec<i8>>),
    Gaussian(Zeroizing<Vec<i64>>),
}

impl SmallPolynomial {
    /// Uniform in {−1, 0, 1}.
    pub fn ternary(degree: usize, seed: &[u8; 32], stream: u64) -> Self {
        let mut values = Zeroizing::new(vec![0; degree]);
        Stream::new(seed, stream).ternary(&mut values);
        SmallPolynomial::Ternary(values)
    }

    /// Uniform among those with `weight` coefficients of −1 or 1 and zeros for the others. Each try
    /// reads a word: its low bits are the place, the next one is the sign; places that are taken
    /// are tried again.
    #[cfg(feature = "client")]
    pub fn sparse(degree: usize, weight: usize, seed: &[u8; 32], stream: u64) -> Self {
        let mut values = Zeroizing::new(vec![0i8; degree]);
        let mut stream = Stream::new(seed, stream);
        let bits = degree.trailing_zeros();
        let mut left = weight.min(degree);
        while left > 0 {
            let mut word = Zeroizing::new([0u64]);
            stream.uniform_bits(bits + 1, &mut *word);
            let place = word[0] as usize % degree;
            if values[place] == 0 {
                values[place] = if word[0] >> bits == 1 { 1 } else { -1 };
                left -= 1;
            }
        }
        SmallPolynomial::Ternary(values)
    }

    /// Discrete Gaussian with σ = 3.2.
    pub fn gaussian(degree: usize, seed: &[u8; 32], stream: u64) -> Self {
        let mut values = Zeroizing::new(vec![0i32; degree]);
        Stream::new(seed, stream).gaussian(&mut values);
        SmallPolynomial::Gaussian(Zeroizing::new(
            values.iter().map(|&value| i64::from(value)).collect(),
        ))
    }

    /// Its residues.
    pub fn lift(&self, out: &mut [u64], m: &Modulus) {
        match self {
            SmallPolynomial::Ternary(values) => convert::lift_ternary(out, values, m),
            SmallPolynomial::Gaussian(values) => convert::lift(out, values, m),
        }
    }

    /// Its values modulo q_0 … q_level.
    pub fn values(&self, params: &Arc<Params>, level: usize) -> SecretPoly {
        let mut poly = Poly::<Coefficient>::scratch(params, level);
        poly.for_limbs(|_, table, limb| self.lift(limb, table.modulus()));
        SecretPoly(poly.into_ntt())
    }
}

/// A polynomial whose buffer is wiped before it is used again, unless it is released as a part of a
/// ciphertext.
pub(super) struct SecretPoly(Poly<Ntt>);

impl SecretPoly {
    /// Watches over a polynomial.
    #[cfg(feature = "client")]
    pub fn new(poly: Poly<Ntt>) -> Self {
        SecretPoly(poly)
    }

    /// The polynomial, which is secret no more.
    pub fn release(mut self) -> Poly<Ntt> {
        let empty = Poly::empty(self.0.params());
        core::mem::replace(&mut self.0, empty)
    }
}

impl Deref for SecretPoly {
    type Target = Poly<Ntt>;

    fn deref(&self) -> &Poly<Ntt> {
        &self.0
    }
}

impl DerefMut for SecretPoly {
    fn deref_mut(&mut self) -> &mut Poly<Ntt> {
        &mut self.0
    }
}

impl Drop for SecretPoly {
    fn drop(&mut self) {
        self.0.residues_mut().zeroize();
    }
}
