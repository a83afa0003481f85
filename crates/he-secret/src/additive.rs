//! What the owner of an additively homomorphic scheme's key can do.

pub use ciphervec_he::additive::*;

use crate::error::Result;

/// What only the key owner can do.
pub trait Decrypt: Send + Sync {
    /// The public half.
    type Public: Evaluate;

    /// The public half.
    fn public(&self) -> &Self::Public;

    /// [`Evaluate::encrypt`] by the key owner: the same ciphertexts, faster where the secret helps.
    ///
    /// # Errors
    /// Those of [`Evaluate::encrypt`].
    fn encrypt(
        &self,
        rows: usize,
        columns: usize,
        messages: &Messages,
    ) -> Result<<Self::Public as Evaluate>::Table>;

    /// The messages, row after row, each known to be below `2^(bits - 1)` in absolute value.
    ///
    /// # Errors
    /// [`crate::Error::Bound`] when a message is not: some declared bound was exceeded, or the
    /// ciphertext is not what it claims to be. The error carries no value.
    /// [`crate::Error::WrongKey`].
    fn decrypt(&self, table: &<Self::Public as Evaluate>::Table, bits: u32) -> Result<Messages>;
}
