//! Products and inner products of ciphertexts, and their relinearisation. Server only.
//!
//! A product is of degree 2; relinearisation is a step of its own.

use super::super::Complex;
use super::super::ciphertext::Ciphertext;
use super::super::expected::Expected;
use super::super::key_switch::{KeySwitch, PostProcess};
use super::super::plaintext::{Encoding, Plaintext};
use super::super::poly::{Ntt, Poly};
use super::Evaluator;
use crate::error::{Error, Result};
use ciphervec_arith::poly;
use std::borrow::Cow;

impl Evaluator {
    /// `a b`, of degree 2 and at the product of the scales: sums of such products are relinearised
    /// and rescaled once. Operands are brought to one level as [`Self::explain_multiply`] says.
    ///
    /// # Errors
    /// [`Error::Level`] if no level is left, [`Error::Range`] for operands of degree 2,
    /// [`Error::WrongKey`], [`Error::Parameters`].
    pub fn multiply(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext> {
        linear("a factor", a)?;
        linear("a factor", b)?;
        let [a, b] = self.join(a, b)?;
        let expected = self.chain().product("a product", &a.expected(), &b.expected())?;
        let ([a0, a1], [b0, b1]) = (halves(&a)?, halves(&b)?);
        let middle = Poly::dot([a0, a1], [b1, b0]);
        let parts = vec![Poly::product(a0, b0), middle, Poly::product(a1, b1)];
        Ok(a.become_with(parts, &expected))
    }

    /// `a²`, likewise.
    ///
    /// # Errors
    /// As [`Self::multiply`].
    pub fn square(&self, a: &Ciphertext) -> Result<Ciphertext> {
        linear("a factor", a)?;
        let a = self.due(a)?;
        let expected = self.chain().dependent_product("a square", &a.expected(), &a.expected())?;
        let [a0, a1] = halves(&a)?;
        let middle = Poly::dot([a0, a1], [a1, a0]);
        let parts = vec![Poly::product(a0, a0), middle, Poly::product(a1, a1)];
        Ok(a.become_with(parts, &expected))
    }

    /// `Σ_i a_i b_i`, of degree 2 and not rescaled: products are summed before they are reduced.
    /// All `a` are of one level and scale, and so are all `b`; `magnitude` is a bound on the sum
    /// that the caller knows, which is what has to fit the modulus.
    ///
    /// # Errors
    /// [`Error::Range`] for no pairs, unequal numbers, operands of degree 2 or of different levels
    /// or scales; [`Error::Level`] if the modulus has no room for the sum; [`Error::WrongKey`],
    /// [`Error::Parameters`].
    pub fn inner_product(
        &self,
        a: &[Ciphertext],
        b: &[Ciphertext],
        magnitude: f64,
    ) -> Result<Ciphertext> {
        let known = |operands: &[Ciphertext]| -> Vec<Expected> {
            operands.iter().map(Ciphertext::expected).collect()
        };
        let expected = self.chain().inner_product(&known(a), &known(b), magnitude)?;
        let first = &a[0];
        self.check(first)?;
        a.iter().chain(b).try_for_each(|operand| first.check_same(operand))?;
        // (a_0 + a_1 s)(b_0 + b_1 s), part by part: pairs of indices whose products belong
        // together.
        let part = |indices: &[[usize; 2]]| {
            let mut out = Poly::scratch(&self.params, first.level());
            out.for_limbs(|i, table, limb| {
                let (left, right) = (limbs(a, indices, 0, i), limbs(b, indices, 1, i));
                poly::dot(limb, &left, &right, table.modulus());
            });
            out
        };
        let parts = vec![part(&[[0, 0]]), part(&[[0, 1], [1, 0]]), part(&[[1, 1]])];
        Ok(first.become_with(parts, &expected))
    }

    /// Back to degree 1; a ciphertext of degree 1 as it is.
    ///
    /// # Errors
    /// [`Error::MissingKey`] without the relinearisation key, [`Error::WrongKey`],
    /// [`Error::Parameters`].
    pub fn relinearise(&self, a: &Ciphertext) -> Result<Ciphertext> {
        let [c0, c1, c2] = a.parts() else {
            return Ok(a.clone());
        };
        let keys = self.keys_for(a, "relinearisation", "KeyPlan::relinearise")?;
        let key = keys.relinearisation(a.level())?;
        let plus = [Some(c0), Some(c1)];
        let parts = KeySwitch { input: c2, key, plus, post: PostProcess::Keep }.run();
        Ok(a.become_with(parts, &self.chain().switched(&a.expected())))
    }

    /// `a b`, relinearised and rescaled: a ciphertext of degree 1, one level lower.
    ///
    /// # Errors
    /// As [`Self::multiply`] and [`Self::relinearise`].
    pub fn mul(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext> {
        self.normalise(&self.multiply(a, b)?)
    }

    /// Relinearises what is of degree 2 and rescales what is due, both in one pass.
    ///
    /// # Errors
    /// As [`Self::relinearise`].
    pub fn normalise(&self, a: &Ciphertext) -> Result<Ciphertext> {
        let pending = self.is_pending(a);
        let [c0, c1, c2] = a.parts() else {
            return if pending { self.rescale(a) } else { Ok(a.clone()) };
        };
        if !pending {
            return self.relinearise(a);
        }
        let keys = self.keys_for(a, "relinearisation", "KeyPlan::relinearise")?;
        let level = a.level();
        let key = keys.relinearisation(level)?;
        let plus = [Some(c0), Some(c1)];
        let parts = KeySwitch { input: c2, key, plus, post: PostProcess::Rescale }.run();
        Ok(a.become_with(parts, &self.chain().switched_and_rescaled(&a.expected())))
    }

    /// `a` times a plaintext, slot by slot, at the product of the scales. A plaintext at the
    /// canonical scale of the level makes a product whose rescale lands on the canonical scale
    /// below.
    ///
    /// # Errors
    /// [`Error::Level`] if no level is left, [`Error::Range`] for a plaintext of a lower level,
    /// [`Error::Parameters`].
    pub fn multiply_plain(&self, a: &Ciphertext, plaintext: &Plaintext) -> Result<Ciphertext> {
        self.check_plain(a, plaintext)?;
        let (scale, slots, magnitude) =
            (plaintext.scale(), plaintext.slots(), plaintext.magnitude());
        let expected = self.chain().product_with_plain(&a.expected(), scale, slots, magnitude)?;
        let parts = a.parts().iter().map(|part| Poly::product(part, plaintext.poly())).collect();
        Ok(a.become_with(parts, &expected))
    }

    /// `a` times `values`, slot by slot, encoded at the scale whose product rescales to a canonical
    /// one.
    ///
    /// # Errors
    /// As [`Self::multiply_plain`], and those of [`Plaintext::encode`].
    pub fn multiply_values(&self, a: &Ciphertext, values: &[f64]) -> Result<Ciphertext> {
        let a = self.due(a)?;
        let encoding = self.factor_encoding(&a)?;
        self.multiply_plain(&a, &Plaintext::encode_with(&self.params, values, &encoding)?)
    }

    /// [`Self::multiply_values`] of complex numbers.
    ///
    /// # Errors
    /// As [`Self::multiply_values`].
    pub fn multiply_complex_values(
        &self,
        a: &Ciphertext,
        values: &[Complex],
    ) -> Result<Ciphertext> {
        let a = self.due(a)?;
        let encoding = self.factor_encoding(&a)?;
        let plaintext = Plaintext::encode_complex_with(&self.params, values, &encoding)?;
        self.multiply_plain(&a, &plaintext)
    }

    /// [`Self::multiply_values`], rescaled.
    ///
    /// # Errors
    /// As [`Self::multiply_values`].
    pub fn mul_values(&self, a: &Ciphertext, values: &[f64]) -> Result<Ciphertext> {
        self.rescale(&self.multiply_values(a, values)?)
    }

    fn factor_encoding(&self, a: &Ciphertext) -> Result<Encoding> {
        let scale = Some(self.factor_scale(a)?);
        Ok(Encoding { level: Some(a.level()), scale, slots: Some(a.slots()), magnitude: None })
    }

    /// The scale of a factor whose product with `a` rescales to the canonical scale of the level
    /// below.
    pub fn factor_scale(&self, a: &Ciphertext) -> Result<f64> {
        self.chain().factor_scale(&a.expected())
    }

    /// The operand of a product, rescaled if that is due.
    pub(super) fn due<'a>(&self, a: &'a Ciphertext) -> Result<Cow<'a, Ciphertext>> {
        self.check(a)?;
        Ok(if self.is_pending(a) { Cow::Owned(self.rescale(a)?) } else { Cow::Borrowed(a) })
    }
}

/// Limb `index` of the parts of all `operands` that pairs name at `place`, pair after pair.
fn limbs<'a>(
    operands: &'a [Ciphertext],
    pairs: &[[usize; 2]],
    place: usize,
    index: usize,
) -> Vec<&'a [u64]> {
    let mut limbs = Vec::with_capacity(pairs.len() * operands.len());
    for pair in pairs {
        limbs.extend(operands.iter().map(|x| x.parts()[pair[place]].limb(index)));
    }
    limbs
}

/// Refuses a ciphertext of degree 2.
pub(super) fn linear(what: &'static str, a: &Ciphertext) -> Result<()> {
    a.expected().linear(what)
}

/// The two parts of a ciphertext of degree 1.
pub(in super::super) fn halves(a: &Ciphertext) -> Result<[&Poly<Ntt>; 2]> {
    let parts: Vec<_> = a.parts().iter().collect();
    parts.try_into().map_err(|_| Error::Range {
        what: "a ciphertext",
        expected: "of degree 1 (relinearise it first)".into(),
        actual: format!("degree {}", a.degree()),
    })
}
