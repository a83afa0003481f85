//! The key pair of an owner's index under an additively homomorphic scheme: made, sealed and opened. Owner only.

use super::form::KeyPairSlot;
use super::owner::Owner;
use crate::error::{Error, Result};

impl Owner {
    /// Makes the key pair of a new index: some seconds, for long keys.
    ///
    /// # Errors
    /// [`Error::KeyPairHeld`]; a scheme without a key pair; a length that the scheme does not have; no randomness.
    pub fn generate_key_pair(&self) -> Result<()> {
        self.key_pair()?.generate()
    }

    /// Takes in what [`Self::sealed_key_pair`] gave. What opens is what the owner sealed for this very index.
    ///
    /// # Errors
    /// [`Error::Envelope`] for other bytes, another master key or another index; [`Error::KeyPairHeld`].
    pub fn open_key_pair(&self, sealed: &[u8]) -> Result<()> {
        self.key_pair()?.open(self.root(), sealed)
    }

    /// The key pair encrypted under the master key, to be kept beside the index.
    ///
    /// # Errors
    /// [`Error::NoKeyPair`]; no randomness.
    pub fn sealed_key_pair(&self) -> Result<Vec<u8>> {
        self.key_pair()?.seal(self.root())
    }

    /// The public key, framed: what [`crate::search::ServerIndex::set_evaluation_keys`] takes.
    ///
    /// # Errors
    /// [`Error::NoKeyPair`].
    pub fn public_key(&self) -> Result<Vec<u8>> {
        self.key_pair()?.public_key()
    }

    fn key_pair(&self) -> Result<&dyn KeyPairSlot> {
        self.form().key_pair().ok_or_else(|| {
            let known = "an additively homomorphic one to have a key pair";
            Error::choice("scheme", known, self.spec().scheme().as_str())
        })
    }
}
