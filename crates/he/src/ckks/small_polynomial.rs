//! Polynomials of noise and ternary secrets, expanded from a seed.
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
pub enum SmallPolynomial {
    /// Of −1, 0 and 1.
    Ternary(Zeroizing<Vec<i8>>),
    /// Of noise.
    Gaussian(Zeroizing<Vec<i64>>),
}

impl SmallPolynomial {
    /// Uniform in {−1, 0, 1}.
    pub fn ternary(degree: usize, seed: &[u8; 32], stream: u64) -> Self {
        let mut values = Zeroizing::new(vec![0; degree]);
        Stream::new(seed, stream).ternary(&mut values);
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
pub struct SecretPoly(Poly<Ntt>);

impl SecretPoly {
    /// Watches over a polynomial.
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
