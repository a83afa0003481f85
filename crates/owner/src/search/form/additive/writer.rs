//! Encrypts rows under an index's public key, for anyone who has it.

use super::check::{self, EncryptedBytes};
use super::writer_key::{WriterKey, read_writer_key};
use crate::error::Result;
use crate::index::form::Additive;
use crate::index::spec::IndexSpec;
use crate::search::form::contract::{EncryptedRows, Expected, RowEncryptor};
use crate::search::quantize::Checked;
use crate::search::root_key::SegmentRootKey;
use crate::search::segment::HEADROOM;
use ciphervec_arith::AlignedBytes;
use ciphervec_he_secret::keys::{Secret, random_bytes};
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::wire::KeyId;

pub struct AdditiveWriter {
    spec: IndexSpec,
    key: Box<dyn WriterKey>,
}

impl AdditiveWriter {
    /// A writer under the public key in `bytes`.
    ///
    /// # Errors
    /// As [`read_writer_key`].
    pub fn new(spec: IndexSpec, chosen: &Additive, bytes: &[u8]) -> Result<Self> {
        Ok(AdditiveWriter { spec, key: read_writer_key(chosen, bytes)? })
    }
}

impl RowEncryptor for AdditiveWriter {
    fn encrypt_rows(
        &self,
        root: &SegmentRootKey,
        rows: &Checked<'_>,
        _expected: &Expected,
    ) -> Result<EncryptedRows> {
        let encrypt = |seed: &Secret| self.key.encrypt(&self.spec, rows.as_given(), seed);
        under(self.key.key_id(), root, &self.spec, encrypt)
    }
}

/// Ciphertexts as the rows of a segment. Every one has noise of its own: the id is a name here, of which the weights of the
/// checks are derived, and no nonce.
pub fn under(
    key: KeyId,
    root: &SegmentRootKey,
    spec: &IndexSpec,
    encrypt: impl FnOnce(&Secret) -> Result<EncryptedBytes>,
) -> Result<EncryptedRows> {
    let id = SegmentId(random_bytes()?);
    let (vectors, witness) = encrypt(&check::seed(root, spec, id))?;
    let mut words = AlignedBytes::zeroed(HEADROOM + vectors.len());
    words[HEADROOM..].copy_from_slice(&vectors);
    Ok(EncryptedRows { id, level: 0, key, words, witness })
}
