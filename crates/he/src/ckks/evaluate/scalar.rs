//! Sums and products of a ciphertext with one number for all slots. Server only.
//!
//! `X^(N/2)` is i in every slot, so a + b i with integers a and b is the polynomial a + b X^(N/2):
//! such factors and all summands cost no level. The transform holds `X^(N/2)` as I in its first
//! half and −I in its second, I² = −1.

use super::super::Complex;
use super::super::ciphertext::Ciphertext;
use super::super::plaintext::residue;
use super::super::poly::{Ntt, Poly};
use super::Evaluator;
use crate::error::Result;
use ciphervec_arith::{Modulus, NttTable, poly};

/// Words that are multiplied before they are added, in the nearest cache.
const PIECE: usize = 1 << 11;

/// Integers, held as doubles, as real and imaginary part of a constant.
#[derive(Clone, Copy)]
struct Constant {
    re: f64,
    im: f64,
}

impl Constant {
    /// The nearest one.
    fn rounded(number: Complex) -> Self {
        Constant { re: number.re.round_ties_even(), im: number.im.round_ties_even() }
    }

    /// Its residues in the first and in the second half of a transform.
    fn residues(self, table: &NttTable) -> [u64; 2] {
        let m = table.modulus();
        let re = residue(self.re, m);
        if self.im == 0.0 {
            return [re, re];
        }
        let unit = m.pow(table.root(), table.degree() as u64 / 2);
        let im = m.mul(residue(self.im, m), unit);
        [m.add(re, im), m.sub(re, im)]
    }

    /// Runs `work` on every half of every limb.
    fn apply(self, part: &mut Poly<Ntt>, work: impl Fn(&mut [u64], u64, &Modulus) + Send + Sync) {
        part.for_limbs(|_, table, limb| {
            let halves = limb.chunks_exact_mut(table.degree() / 2).zip(self.residues(table));
            halves.for_each(|(half, c)| work(half, c, table.modulus()));
        });
    }

    /// `sum += part` times the constant, where `part` may have more limbs.
    fn add_multiple(self, sum: &mut Poly<Ntt>, part: &Poly<Ntt>) {
        sum.for_limbs(|index, table, limb| {
            let (m, half) = (table.modulus(), table.degree() / 2);
            let mut piece = [0u64; PIECE];
            let halves = limb.chunks_exact_mut(half).zip(part.limb(index).chunks_exact(half));
            for ((sum, part), c) in halves.zip(self.residues(table)) {
                for (sum, part) in sum.chunks_mut(PIECE).zip(part.chunks(PIECE)) {
                    let piece = &mut piece[..part.len()];
                    piece.copy_from_slice(part);
                    poly::scalar_mul_assign(piece, c, m);
                    poly::add_assign(sum, piece, m);
                }
            }
        });
    }

    fn multiply(self, a: &Ciphertext) -> Vec<Poly<Ntt>> {
        let mut parts = a.parts().to_vec();
        parts.iter_mut().for_each(|part| self.apply(part, poly::scalar_mul_assign));
        parts
    }
}

impl Evaluator {
    /// `a + number` in every slot; no level is spent.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a number that is not finite, too large for the modulus, or not real in
    /// the conjugate-invariant ring.
    pub fn add_scalar(&self, a: &Ciphertext, number: impl Into<Complex>) -> Result<Ciphertext> {
        let number = number.into();
        self.check(a)?;
        let expected = self.chain().sum_with_scalar(&a.expected(), number)?;
        let constant = Constant::rounded(number.scale(a.scale()));
        let mut result = a.clone();
        constant.apply(&mut result.parts[0], |half, c, m| {
            half.iter_mut().for_each(|value| *value = m.add(*value, c));
        });
        Ok(result.estimated(&expected))
    }

    /// `a` times a number, at the scale whose rescale is canonical: a level is spent when it is
    /// rescaled.
    ///
    /// # Errors
    /// [`crate::Error::Level`] if no level is left; [`crate::Error::Range`] as for [`Self::add_scalar`].
    pub fn multiply_scalar(
        &self,
        a: &Ciphertext,
        number: impl Into<Complex>,
    ) -> Result<Ciphertext> {
        let number = number.into();
        self.chain().finite(number)?;
        let a = self.due(a)?;
        let (factor, expected) = self.chain().product_with_scalar(&a.expected(), number)?;
        Ok(a.become_with(Constant::rounded(number.scale(factor)).multiply(&a), &expected))
    }

    /// `sum + a number`, with a at `level`: what [`Self::drop_to`], [`Self::multiply_scalar`] and
    /// [`Self::add_to`] do one after the other, in one pass where it can be.
    ///
    /// # Errors
    /// As these.
    pub(in crate::ckks) fn add_multiple(
        &self,
        mut sum: Ciphertext,
        a: &Ciphertext,
        level: usize,
        number: Complex,
    ) -> Result<Ciphertext> {
        self.chain().finite(number)?;
        let a = self.due(a)?;
        let at = self.chain().dropped(&a.expected(), level)?;
        let (factor, expected) = self.chain().product_with_scalar(&at, number)?;
        let alike = (sum.level(), sum.scale()) == (level, expected.scale);
        if !alike || sum.parts().len() < a.parts().len() {
            let term = self.multiply_scalar(&self.drop_to(&a, level)?, number)?;
            return self.add_to(sum, &term);
        }
        sum.check_same(&a)?;
        let constant = Constant::rounded(number.scale(factor));
        for (sum, part) in sum.parts.iter_mut().zip(a.parts()) {
            constant.add_multiple(sum, part);
        }
        let expected = self.chain().sum(&sum.expected(), &expected);
        Ok(sum.estimated(&expected))
    }

    /// [`Self::multiply_scalar`], rescaled.
    ///
    /// # Errors
    /// As [`Self::multiply_scalar`].
    pub fn mul_scalar(&self, a: &Ciphertext, number: impl Into<Complex>) -> Result<Ciphertext> {
        self.rescale(&self.multiply_scalar(a, number)?)
    }

    /// `a` times an integer; no level is spent.
    ///
    /// # Errors
    /// [`crate::Error::Range`] if the modulus has no room for it.
    pub fn multiply_integer(&self, a: &Ciphertext, factor: i64) -> Result<Ciphertext> {
        self.multiply_gaussian(a, factor, 0)
    }

    /// `a` times the Gaussian integer `re + im i`; no level is spent.
    ///
    /// # Errors
    /// As [`Self::multiply_integer`]; [`crate::Error::Range`] for an imaginary part in the
    /// conjugate-invariant ring.
    pub fn multiply_gaussian(&self, a: &Ciphertext, re: i64, im: i64) -> Result<Ciphertext> {
        self.check(a)?;
        let expected = self.chain().product_with_integer(&a.expected(), re, im)?;
        let parts = Constant { re: re as f64, im: im as f64 }.multiply(a);
        Ok(a.become_with(parts, &expected))
    }

    /// `a` times i; no level is spent.
    ///
    /// # Errors
    /// [`crate::Error::Range`] in the conjugate-invariant ring.
    pub fn multiply_by_i(&self, a: &Ciphertext) -> Result<Ciphertext> {
        self.multiply_gaussian(a, 0, 1)
    }
}
