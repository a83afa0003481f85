//! Makes roots of unity with levels of a client's compact ciphertexts and keys, at the server.

use super::layout::Compact;
use super::messages::RootKeys;
use crate::error::Result;
use ciphervec_he::ckks::{Ciphertext, CompactCiphertexts, Components};

impl Compact {
    /// Of `lists` ciphertexts of `query` from `first` on one ciphertext of roots each, at
    /// [`Exponential::level`](ciphervec_he::ckks::Exponential::level).
    ///
    /// # Errors
    /// A wrong or a missing key, too few ciphertexts.
    pub fn roots(
        &self,
        keys: &RootKeys,
        query: &CompactCiphertexts,
        (first, lists): (usize, usize),
    ) -> Result<Vec<Ciphertext>> {
        let mut roots = Vec::with_capacity(lists);
        for at in (0..lists).step_by(2) {
            let (numbers, components) = if at + 1 < lists {
                let pair = self.ring().switch_pair(query, first + at, &keys.switch)?;
                (pair, Components::Both)
            } else {
                (self.ring().switch(query, first + at, &keys.switch)?, Components::Real)
            };
            let made =
                self.exponential().from_coefficients(&numbers, components, &keys.bootstrapping)?;
            roots.extend(made);
        }
        Ok(roots)
    }
}
