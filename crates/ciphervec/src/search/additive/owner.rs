//! The owner's key pair of an additively homomorphic scheme: made, sealed, opened. Its public half leaves. Owner only.

use super::key_pair::{self, KeyPair};
use crate::error::{Error, Result};
use crate::search::Owner;
use crate::search::seal::Engine;

impl Owner {
    /// Makes the key pair of a new index: some seconds, for long keys.
    ///
    /// # Errors
    /// [`Error::KeyPairHeld`]; a scheme without a key pair; a length that the scheme does not have; no randomness.
    pub fn generate_key_pair(&self) -> Result<()> {
        self.hold(key_pair::generate(self.spec())?)
    }

    /// Takes in what [`Self::sealed_key_pair`] gave. What opens is what the owner sealed for this very index.
    ///
    /// # Errors
    /// [`Error::Envelope`] for other bytes, another master key or another index; [`Error::KeyPairHeld`].
    pub fn open_key_pair(&self, sealed: &[u8]) -> Result<()> {
        self.hold(key_pair::open(self.aead(), self.spec(), sealed)?)
    }

    /// The key pair encrypted under the master key, to be kept beside the index.
    ///
    /// # Errors
    /// [`Error::NoKeyPair`]; no randomness.
    pub fn sealed_key_pair(&self) -> Result<Vec<u8>> {
        key_pair::seal(self.aead(), self.spec(), self.key_pair()?)
    }

    /// The public key, framed: what [`crate::search::ServerIndex::set_evaluation_keys`] takes.
    ///
    /// # Errors
    /// [`Error::NoKeyPair`].
    pub fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.key_pair()?.public_key())
    }

    /// The key pair of an additively homomorphic scheme.
    pub(in crate::search) fn key_pair(&self) -> Result<&dyn KeyPair> {
        match &self.engine {
            Engine::Additive(pair) => pair.get().map(Box::as_ref).ok_or(Error::NoKeyPair),
            _ => Err(key_pair::no_pair()),
        }
    }

    fn hold(&self, made: Box<dyn KeyPair>) -> Result<()> {
        match &self.engine {
            Engine::Additive(pair) => pair.set(made).map_err(|_| Error::KeyPairHeld),
            _ => Err(key_pair::no_pair()),
        }
    }
}
