//! Rotates and conjugates the slots of a ciphertext. Server only.

use super::super::ciphertext::Ciphertext;
use super::super::expected::check_count;
use super::super::key_switch::{DecomposedPoly, KeySwitch, PostProcess};
use super::super::keys::KeySwitchKey;
use super::Evaluator;
use super::multiply::{halves, linear};
use crate::error::Result;

/// A ciphertext with its digits at hand: what several rotations of it share.
#[derive(Clone)]
pub struct Decomposed {
    ciphertext: Ciphertext,
    digits: DecomposedPoly,
}

impl Decomposed {
    /// The ciphertext.
    pub fn ciphertext(&self) -> &Ciphertext {
        &self.ciphertext
    }
}

impl core::fmt::Debug for Decomposed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Decomposed").field("ciphertext", &self.ciphertext).finish_non_exhaustive()
    }
}

impl Evaluator {
    /// Slot j of the result is slot j + `steps` of `a`, cyclically in its slots.
    ///
    /// # Errors
    /// [`crate::Error::MissingKey`] without a key for this rotation, [`crate::Error::Range`] for a ciphertext of
    /// degree 2, [`crate::Error::WrongKey`], [`crate::Error::Parameters`].
    pub fn rotate(&self, a: &Ciphertext, steps: i64) -> Result<Ciphertext> {
        linear("a ciphertext to rotate", a)?;
        if steps.rem_euclid(a.slots() as i64) == 0 {
            return Ok(a.clone());
        }
        let (element, key) = self.rotation_key(a, steps)?;
        self.apply_automorphism(a, element, key, None)
    }

    /// The complex conjugate of every slot.
    ///
    /// # Errors
    /// [`crate::Error::MissingKey`] without the conjugation key; [`crate::Error::Range`] in the
    /// conjugate-invariant ring and for degree 2.
    pub fn conjugate(&self, a: &Ciphertext) -> Result<Ciphertext> {
        linear("a ciphertext to conjugate", a)?;
        self.params.ring().check_conjugation()?;
        let (element, key) = self.conjugation_key(a)?;
        self.apply_automorphism(a, element, key, None)
    }

    /// Cuts c_1 into digits once, for [`Self::rotate_hoisted`].
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a ciphertext of degree 2, [`crate::Error::Parameters`].
    pub fn decompose(&self, a: &Ciphertext) -> Result<Decomposed> {
        self.check(a)?;
        linear("a ciphertext to rotate", a)?;
        let [_, linear] = halves(a)?;
        Ok(Decomposed { digits: DecomposedPoly::new(linear), ciphertext: a.clone() })
    }

    /// [`Self::rotate`] by each of `steps`, from one decomposition.
    ///
    /// # Errors
    /// As [`Self::rotate`].
    pub fn rotate_hoisted(&self, a: &Decomposed, steps: &[i64]) -> Result<Vec<Ciphertext>> {
        let ciphertext = &a.ciphertext;
        let rotate = |&steps: &i64| {
            if steps.rem_euclid(ciphertext.slots() as i64) == 0 {
                return Ok(ciphertext.clone());
            }
            let (element, key) = self.rotation_key(ciphertext, steps)?;
            self.apply_automorphism(ciphertext, element, key, Some(&a.digits))
        };
        steps.iter().map(rotate).collect()
    }

    /// In every slot the sum over `count` slots from it on, cyclically: log2(`count`) rotations.
    ///
    /// # Errors
    /// [`crate::Error::Range`] unless `count` is a power of two up to the number of slots; those of
    /// [`Self::rotate`].
    pub fn inner_sum(&self, a: &Ciphertext, count: usize) -> Result<Ciphertext> {
        check_count(count, a.slots())?;
        let mut sum = a.clone();
        for bit in 0..count.ilog2() {
            sum = self.add(&sum, &self.rotate(&sum, 1 << bit)?)?;
        }
        Ok(sum)
    }

    /// The Galois element of the conjugation of `a`, and its key.
    pub(in super::super) fn conjugation_key(&self, a: &Ciphertext) -> Result<(u64, &KeySwitchKey)> {
        self.keys_for(a, "conjugation", "KeyPlan::conjugate")?.conjugation(a.level())
    }

    /// The Galois element of a rotation of `a`, and its key.
    pub(in super::super) fn rotation_key(
        &self,
        a: &Ciphertext,
        steps: i64,
    ) -> Result<(u64, &KeySwitchKey)> {
        let what = format!("rotation by {steps}");
        let keys = self.keys_for(a, &what, &format!("KeyPlan::rotations([{steps}])"))?;
        keys.rotation(steps, a.slots(), a.level())
    }

    /// `(c_0 + d_0)(X^g), d_1(X^g)` with d what the key makes of c_1 (docs/ckks.md, section 4),
    /// whose digits may be at hand.
    fn apply_automorphism(
        &self,
        a: &Ciphertext,
        element: u64,
        key: &KeySwitchKey,
        digits: Option<&DecomposedPoly>,
    ) -> Result<Ciphertext> {
        let [constant, linear] = halves(a)?;
        let permutation = self.params.automorphism(element);
        let switch = KeySwitch {
            input: linear,
            key,
            plus: [Some(constant), None],
            post: PostProcess::Permute(&permutation),
        };
        let parts = match digits {
            Some(digits) => switch.run_decomposed(digits),
            None => switch.run(),
        };
        Ok(a.become_with(parts, &self.chain().switched(&a.expected())))
    }
}
