//! Makes the bootstrapping keys that refresh ciphertexts of an owner's secret key. Owner only.

use super::super::keys::SecretKey;
use super::super::{Bootstrapper, BootstrappingKeys, Entropy, Exponential};
use super::keys;
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
        self.bootstrapping_keys_watched(bootstrapper, entropy, &mut |_, _| ())
    }

    /// [`Self::bootstrapping_keys_with`], which tells `watch` after each key how many are made, and of
    /// how many: it takes seconds.
    ///
    /// # Errors
    /// As [`Self::bootstrapping_keys`].
    pub fn bootstrapping_keys_watched(
        &self,
        bootstrapper: &Bootstrapper,
        entropy: &mut Entropy,
        watch: &mut dyn FnMut(usize, usize),
    ) -> Result<BootstrappingKeys> {
        self.params().check_same("a bootstrapper", bootstrapper.params())?;
        let plans = bootstrapper.key_plans();
        let all = plans.iter().map(|plan| plan.keys(self.params())).sum();
        let mut count = 0;
        let mut made = || {
            count += 1;
            watch(count, all);
        };
        keys::generate(self, plans, entropy, &mut made)
    }

    /// The keys that `exponential` takes ciphertexts of this key with.
    ///
    /// # Errors
    /// [`Error::Parameters`](crate::Error::Parameters) for a key of other parameters, [`Error::Randomness`](crate::Error::Randomness).
    pub fn exponential_keys(&self, exponential: &Exponential) -> Result<BootstrappingKeys> {
        self.exponential_keys_with(exponential, &mut Entropy::system())
    }

    /// [`Self::exponential_keys`] with randomness from `entropy`.
    ///
    /// # Errors
    /// As [`Self::exponential_keys`].
    pub fn exponential_keys_with(
        &self,
        exponential: &Exponential,
        entropy: &mut Entropy,
    ) -> Result<BootstrappingKeys> {
        self.params().check_same("an exponential", exponential.params())?;
        keys::generate(self, exponential.key_plans(), entropy, &mut || ())
    }
}
