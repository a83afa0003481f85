//! Writing under a public key: rows enter, ciphertexts leave. Whoever has the index's public key can do it.

use super::gallery::PublicKey;
use super::schemes::read_public_key;
use crate::error::Result;
use crate::index::form::Additive;
use crate::index::spec::IndexSpec;
use crate::search::form::contract::{EncryptedRows, Expected, RowEncryptor};
use crate::search::quantize::Checked;
use crate::search::root_key::SegmentRootKey;
use crate::search::segment::HEADROOM;
use ciphervec_arith::AlignedBytes;
use ciphervec_he::keys::random_bytes;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::wire::KeyId;
use zeroize::Zeroizing;

pub struct AdditiveWriter {
    spec: IndexSpec,
    key: Box<dyn PublicKey>,
}

impl AdditiveWriter {
    /// A writer under the public key in `bytes`.
    ///
    /// # Errors
    /// As [`read_public_key`].
    pub fn new(spec: IndexSpec, chosen: &Additive, bytes: &[u8]) -> Result<Self> {
        Ok(AdditiveWriter { spec, key: read_public_key(chosen, bytes)? })
    }
}

impl RowEncryptor for AdditiveWriter {
    fn encrypt_rows(
        &self,
        _root: &SegmentRootKey,
        rows: &Checked<'_>,
        _expected: &Expected,
    ) -> Result<EncryptedRows> {
        under(self.key.key_id(), &self.key.encrypt(&self.spec, rows.as_given())?)
    }
}

/// Ciphertexts as the rows of a segment. Every one has noise of its own: the id is a name here and no nonce.
pub fn under(key: KeyId, vectors: &[u8]) -> Result<EncryptedRows> {
    let mut words = AlignedBytes::zeroed(HEADROOM + vectors.len());
    words[HEADROOM..].copy_from_slice(vectors);
    Ok(EncryptedRows {
        id: SegmentId(random_bytes()?),
        level: 0,
        key,
        words,
        witness: Zeroizing::default(),
    })
}
