//! Sums and differences of aligned ciphertexts, and of a ciphertext and a plaintext. Server only.

use super::super::ciphertext::Ciphertext;
use super::super::plaintext::{Encoding, Plaintext};
use super::super::poly::{Ntt, Poly};
use super::Evaluator;
use crate::error::{Error, Result};

impl Evaluator {
    /// `a + b`, of degree 1 or 2, level and scale brought together as [`Self::explain_add`] says.
    ///
    /// # Errors
    /// [`Error::Scale`] for scales at one level that only a level more could bring together;
    /// [`Error::WrongKey`], [`Error::Parameters`] for operands that do not belong together.
    pub fn add(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext> {
        let [a, b] = self.meet("addition", a, b)?;
        Ok(self.combine(a.into_owned(), &b, Poly::add_assign, false))
    }

    /// [`Self::add`] in the place of `a`.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn add_to(&self, a: Ciphertext, b: &Ciphertext) -> Result<Ciphertext> {
        let [path_a, path_b] = self.paths("addition", &a, b)?;
        let b = self.follow(b, &path_b)?;
        let a = if path_a.is_empty() { a } else { self.follow(&a, &path_a)?.into_owned() };
        Ok(self.combine(a, &b, Poly::add_assign, false))
    }

    /// `a − b`.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn sub(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext> {
        let [a, b] = self.meet("subtraction", a, b)?;
        Ok(self.combine(a.into_owned(), &b, Poly::sub_assign, true))
    }

    fn combine(
        &self,
        mut a: Ciphertext,
        b: &Ciphertext,
        operation: impl Fn(&mut Poly<Ntt>, &Poly<Ntt>),
        negate: bool,
    ) -> Ciphertext {
        let expected = self.chain().sum(&a.expected(), &b.expected());
        for (index, part) in b.parts().iter().enumerate() {
            if let Some(mine) = a.parts.get_mut(index) {
                operation(mine, part);
                continue;
            }
            let mut part = part.clone();
            if negate {
                part.negate();
            }
            a.parts.push(part);
        }
        a.estimated(&expected)
    }

    /// `−a`.
    pub fn negate(&self, a: &Ciphertext) -> Ciphertext {
        let mut result = a.clone();
        result.parts.iter_mut().for_each(Poly::negate);
        result
    }

    /// `a + plaintext`, whose level is at least that of `a` and whose scale is the same.
    ///
    /// # Errors
    /// [`Error::Scale`] for another scale, [`Error::Range`] for a lower level,
    /// [`Error::Parameters`].
    pub fn add_plain(&self, a: &Ciphertext, plaintext: &Plaintext) -> Result<Ciphertext> {
        self.check_plain(a, plaintext)?;
        check_scale("addition", a, plaintext)?;
        let mut result = a.clone();
        result.parts[0].add_assign(plaintext.poly());
        Ok(self.with_plain(result, plaintext))
    }

    /// `a − plaintext`, likewise.
    ///
    /// # Errors
    /// As [`Self::add_plain`].
    pub fn sub_plain(&self, a: &Ciphertext, plaintext: &Plaintext) -> Result<Ciphertext> {
        self.check_plain(a, plaintext)?;
        check_scale("subtraction", a, plaintext)?;
        let mut result = a.clone();
        result.parts[0].sub_assign(plaintext.poly());
        Ok(self.with_plain(result, plaintext))
    }

    /// `a + values`, encoded at the level and the scale of `a`; a shorter vector than the slots is
    /// continued with zeros.
    ///
    /// # Errors
    /// Those of [`Plaintext::encode`].
    pub fn add_values(&self, a: &Ciphertext, values: &[f64]) -> Result<Ciphertext> {
        self.check(a)?;
        let encoding = Encoding {
            level: Some(a.level()),
            scale: Some(a.scale()),
            slots: Some(a.slots()),
            magnitude: None,
        };
        self.add_plain(a, &Plaintext::encode_with(&self.params, values, &encoding)?)
    }

    fn with_plain(&self, sum: Ciphertext, plaintext: &Plaintext) -> Ciphertext {
        let (slots, magnitude) = (plaintext.slots(), plaintext.magnitude());
        let expected = self.chain().sum_with_plain(&sum.expected(), slots, magnitude);
        sum.estimated(&expected)
    }

    /// Refuses a plaintext of other parameters or of a lower level.
    pub(super) fn check_plain(&self, a: &Ciphertext, plaintext: &Plaintext) -> Result<()> {
        self.check(a)?;
        self.params.check_same("a plaintext", plaintext.params())?;
        if plaintext.level() >= a.level() {
            return Ok(());
        }
        Err(Error::Range {
            what: "the level of a plaintext",
            expected: format!("at least {}, the ciphertext's", a.level()),
            actual: plaintext.level().to_string(),
        })
    }
}

fn check_scale(operation: &'static str, a: &Ciphertext, plaintext: &Plaintext) -> Result<()> {
    // A relative difference below the precision of any scale.
    if (a.scale() / plaintext.scale() - 1.0).abs() <= f64::exp2(-42.0) {
        return Ok(());
    }
    Err(Error::Scale {
        operation,
        expected: format!("2^{:.9}", a.scale().log2()),
        actual: format!("2^{:.9}", plaintext.scale().log2()),
        advice: "encode the plaintext at the level and the scale of the ciphertext",
    })
}
