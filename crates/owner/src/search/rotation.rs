//! Seals an owner's other keys under its own while a rotation lasts. Owner only.

use super::owner::Owner;
use crate::error::Result;
use crate::keys::Keys;
use crate::protect::aead;
use zeroize::Zeroizing;

const WHAT: &str = "the keys of a rotation";

impl Owner {
    /// Encrypts `keys` under the owner's own, bound to the index: while a rotation lasts, who holds one key gets at the
    /// other.
    ///
    /// # Errors
    /// No randomness.
    pub fn seal_keys(&self, keys: &Keys) -> Result<Vec<u8>> {
        Ok(self.aead().seal(WHAT, &self.place(), keys.master.expose())?)
    }

    /// The keys that [`Self::seal_keys`] was given.
    ///
    /// # Errors
    /// Bytes that were changed, or sealed under another key or for another index.
    pub fn open_keys(&self, sealed: &[u8]) -> Result<Keys> {
        let opened = self.aead().open(WHAT, &self.place(), sealed)?;
        let master: Zeroizing<[u8; 32]> = Zeroizing::new(
            opened
                .as_slice()
                .try_into()
                .map_err(|_| aead::EnvelopeError::Unauthentic { what: WHAT })?,
        );
        Ok(Keys::from_master(*master))
    }

    fn place(&self) -> Vec<u8> {
        aead::associated_data("ciphervec v1 rotation", &[&self.spec().binding()])
    }
}
