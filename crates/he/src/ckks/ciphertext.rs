//! Ciphertexts: polynomials with level, scale, number of slots and noise.

use super::expected::{Expected, check_magnitude};
use super::noise::Noise;
use super::params::Params;
use super::poly::{Ntt, Poly};
use crate::error::{Error, Result};
use crate::wire::KeyId;
use ciphervec_arith::sample::Stream;
use std::sync::Arc;

/// What is known in public about a ciphertext.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Meta {
    /// The secret key it is under.
    pub key: KeyId,
    /// What numbers are multiplied by.
    pub scale: f64,
    /// Numbers that it holds.
    pub slots: usize,
    /// What is known of its error.
    pub noise: Noise,
    /// A bound on its numbers.
    pub magnitude: f64,
}

/// A ciphertext c_0 + c_1 s (+ c_2 s²), in NTT form.
#[derive(Clone, PartialEq, Debug)]
pub struct Ciphertext {
    pub(super) parts: Vec<Poly<Ntt>>,
    pub(super) meta: Meta,
}

impl Ciphertext {
    /// Of parts and what is known of them. Hidden: keys encrypt, and nobody else makes one.
    #[doc(hidden)]
    pub fn from_parts(parts: Vec<Poly<Ntt>>, meta: Meta) -> Self {
        Ciphertext { parts, meta }
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        self.parts[0].params()
    }

    /// The level: how often it can be rescaled.
    pub fn level(&self) -> usize {
        self.parts[0].level()
    }

    /// The scale: what its slots hold is numbers times this.
    pub fn scale(&self) -> f64 {
        self.meta.scale
    }

    /// The number of slots.
    pub fn slots(&self) -> usize {
        self.meta.slots
    }

    /// The degree in s: 1, or 2 for a product that was not relinearised.
    pub fn degree(&self) -> usize {
        self.parts.len() - 1
    }

    /// c_0, c_1 and, in degree 2, c_2.
    pub fn parts(&self) -> &[Poly<Ntt>] {
        &self.parts
    }

    /// How far it is off, in units of its coefficients.
    pub fn noise(&self) -> &Noise {
        &self.meta.noise
    }

    /// log2 of the standard deviation of the error of a slot's real part: coefficient errors of
    /// many slots add up.
    pub fn error_bits(&self) -> f64 {
        self.params().chain().error_bits(&self.expected())
    }

    /// The bound on the absolute value in a slot that was declared when its operands were encoded.
    pub fn magnitude(&self) -> f64 {
        self.meta.magnitude
    }

    /// What numbers may be at most for its modulus to hold them: beyond, they come back as others.
    pub fn room(&self) -> f64 {
        let half = f64::exp2(self.params().log_modulus(self.level()) - 1.0);
        (half - self.meta.noise.bound).max(0.0) / self.meta.scale
    }

    /// The same ciphertext with a bound that the caller knows to hold: the inner product of two
    /// unit vectors is at most 1, whatever the bounds on their coordinates say.
    ///
    /// # Errors
    /// [`Error::Range`] unless it is positive and finite.
    pub fn with_magnitude(mut self, magnitude: f64) -> Result<Self> {
        check_magnitude(magnitude)?;
        self.meta.magnitude = magnitude;
        Ok(self)
    }

    /// The same ciphertext read as one of `slots` slots: fewer if they are known to repeat, or more
    /// of what is repeated.
    ///
    /// # Errors
    /// [`Error::Range`] unless it is a power of two that the ring has.
    pub fn with_slots(mut self, slots: usize) -> Result<Self> {
        self.params().chain().check_slots(slots)?;
        self.meta.slots = slots;
        Ok(self)
    }

    /// The form that takes half the bytes, if c_1 is what `seed` expands to: for whoever kept the
    /// seed of a fresh ciphertext.
    pub fn seeded(&self, seed: &[u8; 32]) -> Option<SeededCiphertext> {
        let [constant, linear] = self.parts() else { return None };
        let fresh = *linear == mask(self.params(), self.level(), seed);
        fresh.then(|| SeededCiphertext { seed: *seed, constant: constant.clone(), meta: self.meta })
    }

    /// The key it is encrypted under.
    pub fn key_id(&self) -> KeyId {
        self.meta.key
    }

    /// What is known of it besides its polynomials.
    pub fn expected(&self) -> Expected {
        let Meta { scale, slots, noise, magnitude, .. } = self.meta;
        Expected { level: self.level(), degree: self.degree(), scale, slots, noise, magnitude }
    }

    /// A result under this ciphertext's key, of which that is known.
    pub(super) fn become_with(&self, parts: Vec<Poly<Ntt>>, expected: &Expected) -> Self {
        Ciphertext { parts, meta: self.meta }.estimated(expected)
    }

    /// The same parts, of which that is known.
    pub(super) fn estimated(mut self, expected: &Expected) -> Self {
        let &Expected { scale, slots, noise, magnitude, .. } = expected;
        self.meta = Meta { scale, slots, noise, magnitude, ..self.meta };
        self
    }

    /// Refuses an operand of other parameters or another key.
    pub(super) fn check_same(&self, other: &Ciphertext) -> Result<()> {
        let what = "a ciphertext";
        self.params().check_same(what, other.params())?;
        if self.meta.key == other.meta.key {
            return Ok(());
        }
        Err(Error::WrongKey { what, expected: self.meta.key, actual: other.meta.key })
    }
}

/// A fresh ciphertext under the secret key whose c_1 is the expansion of a seed: half the bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct SeededCiphertext {
    pub(super) seed: [u8; 32],
    pub(super) constant: Poly<Ntt>,
    pub(super) meta: Meta,
}

impl SeededCiphertext {
    /// Of c_0 and the seed of c_1. Hidden: secret keys encrypt.
    #[doc(hidden)]
    pub fn from_parts(seed: [u8; 32], constant: Poly<Ntt>, meta: Meta) -> Self {
        SeededCiphertext { seed, constant, meta }
    }

    /// The ciphertext itself.
    pub fn expand(self) -> Ciphertext {
        let linear = mask(self.constant.params(), self.constant.level(), &self.seed);
        Ciphertext { parts: vec![self.constant, linear], meta: self.meta }
    }

    /// The seed of c_1. Public.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// The level.
    pub fn level(&self) -> usize {
        self.constant.level()
    }

    /// The key it is encrypted under.
    pub fn key_id(&self) -> KeyId {
        self.meta.key
    }
}

/// The uniform polynomial of a seed: stream j for its residues modulo q_j.
pub fn mask(params: &Arc<Params>, level: usize, seed: &[u8; 32]) -> Poly<Ntt> {
    let mut out = Poly::scratch(params, level);
    out.for_limbs(|index, table, limb| {
        Stream::new(seed, index as u64).uniform(table.modulus(), limb);
    });
    out
}
