//! The evaluation keys that operations take, and their bytes. Public numbers only.

use crate::error::Result;
use ciphervec_he::ckks::{KeyPlan, Params};
use std::collections::BTreeSet;

/// The evaluation keys of a context, and for which level each is made: keys for a lower level are
/// smaller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyList {
    /// The level up to which products can be relinearised, if at all.
    pub relinearise: Option<usize>,
    /// Rotations.
    pub rotations: BTreeSet<i64>,
    /// The level up to which they can be made.
    pub rotation_level: usize,
}

impl KeyList {
    /// Also the rotations that sum over `width` neighbouring slots, a power of two.
    pub fn sums(mut self, width: usize) -> Self {
        self.rotations.extend((0..width.max(1).ilog2()).map(|bit| 1i64 << bit));
        self
    }

    /// The keys for products.
    pub fn products(&self) -> KeyPlan {
        match self.relinearise {
            Some(level) => KeyPlan::new().relinearise().at_level(level),
            None => KeyPlan::new().at_level(0),
        }
    }

    /// The keys for rotations.
    pub fn turns(&self) -> KeyPlan {
        KeyPlan::new().rotations(self.rotations.iter().copied()).at_level(self.rotation_level)
    }

    /// Bytes of the keys for products, and of those for rotations.
    ///
    /// # Errors
    /// A level that the parameters do not have.
    pub fn bytes(&self, params: &Params) -> Result<(usize, usize)> {
        Ok((self.products().bytes(params)?, self.turns().bytes(params)?))
    }
}
