//! Key plan: the list of evaluation keys that an owner makes for a computation.

use super::super::params::Params;
use super::key_switch_key::KeySwitchKey;
use crate::error::{Error, Result};
use std::collections::BTreeSet;

/// Payload bytes before the first key: level and number of keys.
pub(super) const FIXED_BYTES: usize = 8;

/// The place of the relinearisation key among the Galois elements, which are odd.
pub(super) const RELINEARISE: u64 = 0;

/// A list of evaluation keys to make: only what is listed is made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyPlan {
    pub(super) relinearise: bool,
    pub(super) conjugate: bool,
    pub(super) rotations: BTreeSet<i64>,
    pub(super) level: Option<usize>,
}

impl KeyPlan {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also the key that brings products back to degree 1.
    pub fn relinearise(mut self) -> Self {
        self.relinearise = true;
        self
    }

    /// Also the key that conjugates slots.
    pub fn conjugate(mut self) -> Self {
        self.conjugate = true;
        self
    }

    /// Also the keys of these rotations.
    pub fn rotations(mut self, steps: impl IntoIterator<Item = i64>) -> Self {
        self.rotations.extend(steps);
        self
    }

    /// Also the rotations that sum over `count` neighbouring slots, a power of two.
    pub fn inner_sum(self, count: usize) -> Self {
        let steps = (0..count.max(1).ilog2()).map(|bit| 1 << bit);
        self.rotations(steps)
    }

    /// Keys for ciphertexts up to `level` only: as much smaller as its modulus is.
    pub fn at_level(mut self, level: usize) -> Self {
        self.level = Some(level);
        self
    }

    /// What either plan lists, at the higher of their levels.
    pub fn union(mut self, other: &KeyPlan) -> Self {
        self.relinearise |= other.relinearise;
        self.conjugate |= other.conjugate;
        self.rotations.extend(&other.rotations);
        self.level = self.level.zip(other.level).map(|(a, b)| a.max(b));
        self
    }

    /// The number of keys.
    pub fn keys(&self, params: &Params) -> usize {
        usize::from(self.relinearise) + self.galois_elements(params).len()
    }

    /// Bytes of the serialised keys.
    ///
    /// # Errors
    /// [`Error::Range`] for a level that the parameters do not have.
    pub fn bytes(&self, params: &Params) -> Result<usize> {
        let level = self.checked_level(params)?;
        let entries = self.keys(params) * (8 + KeySwitchKey::bytes_at(params, level));
        Ok(crate::wire::HEADER_LEN + FIXED_BYTES + entries)
    }

    /// Bytes of the keys in memory, where their masks are expanded.
    ///
    /// # Errors
    /// As [`Self::bytes`].
    pub fn memory(&self, params: &Params) -> Result<usize> {
        let level = self.checked_level(params)?;
        Ok(self.keys(params) * KeySwitchKey::memory_at(params, level))
    }

    /// The level, checked.
    #[doc(hidden)]
    pub fn checked_level(&self, params: &Params) -> Result<usize> {
        let level = self.level.unwrap_or(params.max_level());
        params.chain().check_level(level)?;
        if params.spec().special_primes == 0 && self.keys(params) > 0 {
            return Err(Error::Range {
                what: "the number of special primes",
                expected: "at least 1, to switch keys with".into(),
                actual: "0".into(),
            });
        }
        if self.conjugate {
            params.ring().check_conjugation()?;
        }
        Ok(level)
    }

    /// The Galois elements to make keys of, in order: 0 for relinearisation.
    #[doc(hidden)]
    pub fn elements(&self, params: &Params) -> BTreeSet<u64> {
        let mut elements = self.galois_elements(params);
        if self.relinearise {
            elements.insert(RELINEARISE);
        }
        elements
    }

    /// The Galois elements of the rotations and the conjugation; the identity needs no key.
    pub(super) fn galois_elements(&self, params: &Params) -> BTreeSet<u64> {
        let rotations = self.rotations.iter().map(|&steps| rotation_element(params, steps));
        let conjugation = self.conjugate.then(|| conjugation_element(params));
        rotations.chain(conjugation).filter(|&element| element != 1).collect()
    }
}

/// 5^steps modulo 2N (4N in the second ring): slot j of `m(X^g)` is slot j + steps of m.
pub(in super::super) fn rotation_element(params: &Params, steps: i64) -> u64 {
    let order = params.ring().root_order(params.spec().log_degree);
    let steps = steps.rem_euclid(params.max_slots() as i64) as u64;
    let (mut element, mut power) = (1u64, 5u64);
    for bit in 0..steps.checked_ilog2().map_or(0, |top| top + 1) {
        if steps >> bit & 1 == 1 {
            element = element * power % order;
        }
        power = power * power % order;
    }
    element
}

/// 2N − 1: `X ↦ 1/X`.
pub(in super::super) fn conjugation_element(params: &Params) -> u64 {
    params.ring().root_order(params.spec().log_degree) - 1
}
