//! Brings ciphertexts to the level and scale of another one, for the server's sums and products.

use super::super::align::{Path, Place, Step, descend, join, meet};
use super::super::ciphertext::Ciphertext;
use super::super::key_switch;
use super::super::plaintext::residue;
use super::Evaluator;
use crate::error::Result;
use std::borrow::Cow;

impl Evaluator {
    /// What [`Self::add`] and [`Self::sub`] would do to their operands first, in words.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn explain_add(&self, a: &Ciphertext, b: &Ciphertext) -> Result<String> {
        let [a, b] = meet(self.chain(), "addition", [place(a), place(b)])?;
        Ok(format!("{}; {}", a.describe("first"), b.describe("second")))
    }

    /// What [`Self::multiply`] would do to its operands first, in words.
    pub fn explain_multiply(&self, a: &Ciphertext, b: &Ciphertext) -> String {
        let [a, b] = join(self.chain(), [place(a), place(b)]);
        format!("{}; {}", a.describe("first"), b.describe("second"))
    }

    /// Whether the scale is that of a product, so that a rescale is due.
    pub fn is_pending(&self, a: &Ciphertext) -> bool {
        place(a).pending(self.chain())
    }

    /// Divides by the last prime and rounds: one level lower, at a scale smaller by that prime.
    ///
    /// # Errors
    /// [`crate::Error::Level`] at level 0.
    pub fn rescale(&self, a: &Ciphertext) -> Result<Ciphertext> {
        self.check(a)?;
        let expected = self.chain().rescaled(&a.expected())?;
        Ok(a.become_with(key_switch::rescale(a.parts()), &expected))
    }

    /// The same ciphertext without the limbs above `level`, at the scale that it has.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a level above its own.
    pub fn drop_to(&self, a: &Ciphertext, level: usize) -> Result<Ciphertext> {
        self.check(a)?;
        let expected = self.chain().dropped(&a.expected(), level)?;
        let parts = a.parts().iter().map(|part| part.at_level(level)).collect();
        Ok(a.become_with(parts, &expected))
    }

    /// The same numbers, `most` or less in absolute value, at level 0 and the largest scale at which
    /// they are within 1/`room` of the modulus: integers fill what room there is before a rescale, so
    /// that the error grows by nothing but the roundings of those.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for another ciphertext.
    pub fn lower(&self, a: &Ciphertext, most: f64, room: f64) -> Result<Ciphertext> {
        self.check(a)?;
        let chain = self.chain();
        let largest = |level: usize| chain.log_modulus(level).exp2() / (room * most);
        let mut result = a.clone();
        loop {
            let level = result.level();
            if level > 0 && result.scale() <= largest(level - 1) {
                result = self.drop_to(&result, level - 1)?;
                continue;
            }
            let factor = (largest(level) / result.scale()).floor().max(1.0);
            let scale = factor * result.scale();
            result = self.scale_up(result, factor, scale);
            if level == 0 {
                return Ok(result);
            }
            result = self.rescale(&result)?;
        }
    }

    /// `re + i im` of real numbers, whatever the scale of `im`: at that of `re` its numbers are others.
    ///
    /// # Errors
    /// [`crate::Error::Range`] in the conjugate-invariant ring, and as [`Self::add`].
    pub fn join_parts(&self, re: &Ciphertext, im: &Ciphertext) -> Result<Ciphertext> {
        // An integer factor needs no room at a scale that is larger than the modulus, as of tiny numbers.
        let mut unscaled = im.clone();
        unscaled.meta.scale = 1.0;
        let mut turned = self.multiply_by_i(&unscaled)?;
        turned.meta.magnitude *= im.scale() / re.scale();
        turned.meta.scale = re.scale();
        self.add(re, &turned)
    }

    /// The same numbers at a lower level and at its canonical scale.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a level above its own, [`crate::Error::Scale`] if it is at that
    /// level with another scale.
    pub fn match_level(&self, a: &Ciphertext, level: usize) -> Result<Ciphertext> {
        let path = descend(self.chain(), place(a), level)?;
        let result = self.follow(a, &path)?.into_owned();
        if result.level() == level { Ok(result) } else { self.drop_to(&result, level) }
    }

    /// Both operands of a sum at one level and scale.
    pub(super) fn meet<'a>(
        &self,
        operation: &'static str,
        a: &'a Ciphertext,
        b: &'a Ciphertext,
    ) -> Result<[Cow<'a, Ciphertext>; 2]> {
        let [path_a, path_b] = self.paths(operation, a, b)?;
        Ok([self.follow(a, &path_a)?, self.follow(b, &path_b)?])
    }

    /// What brings both operands of a sum to one level and scale.
    pub(super) fn paths(
        &self,
        operation: &'static str,
        a: &Ciphertext,
        b: &Ciphertext,
    ) -> Result<[Path; 2]> {
        self.check(a)?;
        a.check_same(b)?;
        meet(self.chain(), operation, [place(a), place(b)])
    }

    /// Both operands of a product at one level.
    pub(super) fn join<'a>(
        &self,
        a: &'a Ciphertext,
        b: &'a Ciphertext,
    ) -> Result<[Cow<'a, Ciphertext>; 2]> {
        self.check(a)?;
        a.check_same(b)?;
        let [path_a, path_b] = join(self.chain(), [place(a), place(b)]);
        Ok([self.follow(a, &path_a)?, self.follow(b, &path_b)?])
    }

    pub(super) fn follow<'a>(&self, a: &'a Ciphertext, path: &Path) -> Result<Cow<'a, Ciphertext>> {
        let mut result = Cow::Borrowed(a);
        for step in &path.steps {
            result = Cow::Owned(match *step {
                Step::Rescale => self.rescale(&result)?,
                Step::Drop(level) => self.drop_to(&result, level)?,
                Step::Multiply { factor, scale } => {
                    self.scale_up(result.into_owned(), factor, scale)
                }
            });
        }
        if let Cow::Owned(result) = &mut result {
            // What the steps computed is this, up to the last bit of a double.
            result.meta.scale = path.end.scale;
        }
        Ok(result)
    }

    /// Multiplies by an integer that takes the scale to `scale`, up to its own rounding.
    fn scale_up(&self, mut a: Ciphertext, factor: f64, scale: f64) -> Ciphertext {
        let expected = self.chain().scaled_up(&a.expected(), factor, scale);
        a.parts.iter_mut().for_each(|part| part.scale_limbs(|m| residue(factor, m)));
        a.estimated(&expected)
    }
}

fn place(a: &Ciphertext) -> Place {
    Place::of(&a.expected())
}
