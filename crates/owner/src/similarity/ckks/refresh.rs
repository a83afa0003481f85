//! Refreshing: the keys of a bootstrapper that a server refreshes arrays with. Key owner only.

use super::client::Client;
use super::keys::KeyList;
use crate::error::Result;
use ciphervec_he_secret::ckks::{Bootstrapper, BootstrappingKeys, Entropy};

impl Client {
    /// A fresh key under the parameters of `bootstrapper`, with keys for products of what is
    /// refreshed, for the rotations of it, and for sums over `sums` slots, a power of two.
    ///
    /// # Errors
    /// As [`Self::generate`].
    pub fn for_bootstrapping(
        bootstrapper: &Bootstrapper,
        rotations: impl IntoIterator<Item = i64>,
        sums: usize,
    ) -> Result<Self> {
        let level = bootstrapper.level();
        let rotations = rotations.into_iter().collect();
        let list = KeyList { relinearise: Some(level), rotations, rotation_level: level };
        Self::generate(bootstrapper.params(), list.sums(sums))
    }

    /// The keys that a server refreshes with. `watch` hears after each how many are made, and of how
    /// many.
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::Parameters`] for a bootstrapper of other parameters,
    /// [`ciphervec_he_secret::Error::Randomness`].
    pub fn bootstrapping_keys(
        &self,
        bootstrapper: &Bootstrapper,
        watch: &mut dyn FnMut(usize, usize),
    ) -> Result<BootstrappingKeys> {
        let entropy = &mut Entropy::system();
        Ok(self.secret.bootstrapping_keys_watched(bootstrapper, entropy, watch)?)
    }
}
