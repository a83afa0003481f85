//! Bootstrapping keys of an owner: a secret key enters, what refreshes its ciphertexts leaves. Owner
//! only.

use super::super::{entropy::Entropy, keys::SecretKey};
use super::spec::WEIGHT;
use super::{Bootstrapper, BootstrappingKeys};
use crate::error::Result;

impl SecretKey {
    /// The keys that `bootstrapper` refreshes ciphertexts of this key with.
    ///
    /// # Errors
    /// [`crate::Error::Parameters`] for a key of other parameters, [`crate::Error::Randomness`].
    pub fn bootstrapping_keys(&self, bootstrapper: &Bootstrapper) -> Result<BootstrappingKeys> {
        self.bootstrapping_keys_with(bootstrapper, &mut Entropy::system())
    }

    /// [`Self::bootstrapping_keys`] with randomness from `entropy`.
    ///
    /// # Errors
    /// As [`Self::bootstrapping_keys`].
    pub fn bootstrapping_keys_with(
        &self,
        bootstrapper: &Bootstrapper,
        entropy: &mut Entropy,
    ) -> Result<BootstrappingKeys> {
        self.params().check_same("a bootstrapper", bootstrapper.params())?;
        BootstrappingKeys::generate(self, WEIGHT, bootstrapper.key_plans(), entropy)
    }
}
