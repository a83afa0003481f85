//! Public key of an index, whichever its scheme, as a writer uses it: it encrypts rows, with a witness.

use super::check::{self, EncryptedBytes};
use super::layout;
use crate::error::Result;
use crate::index::form::Additive;
use crate::index::scheme::SchemeVisitor;
use crate::index::spec::IndexSpec;
use crate::similarity::additive::{EncryptedVectors, Vectors};
use ciphervec::search::form::additive::schemes::{none, read_key_of};
use ciphervec_he_secret::additive::Evaluate;
use ciphervec_he_secret::keys::Secret;
use ciphervec_he_secret::scheme::AdditiveScheme;
use ciphervec_he_secret::wire::KeyId;

/// A public key that rows are encrypted under.
pub trait WriterKey: Send + Sync {
    /// The public name of the key.
    fn key_id(&self) -> KeyId;

    /// Encrypts rows, row-major, in the layout that suits their number; beside them their witness.
    ///
    /// # Errors
    /// Rows that cannot be rounded; no randomness.
    fn encrypt(&self, spec: &IndexSpec, rows: &[f32], seed: &Secret) -> Result<EncryptedBytes>;
}

/// Reads the public key of an index.
///
/// # Errors
/// Damaged bytes, a key of another scheme or length.
pub fn read_writer_key(chosen: &Additive, bytes: &[u8]) -> Result<Box<dyn WriterKey>> {
    let read = ReadWriterKey { chosen, bytes };
    chosen.scheme().visit(read).unwrap_or_else(|| Err(none(chosen)))
}

struct ReadWriterKey<'a> {
    chosen: &'a Additive,
    bytes: &'a [u8],
}

impl SchemeVisitor for ReadWriterKey<'_> {
    type Output = Result<Box<dyn WriterKey>>;

    fn visit<S: AdditiveScheme>(self) -> Self::Output {
        let key = read_key_of::<S>(self.chosen, self.bytes)?;
        Ok(Box::new(Under { key, packs: S::PACKS }))
    }
}

/// A key of one scheme; `packs` says whether its messages hold several numbers.
struct Under<P> {
    key: P,
    packs: bool,
}

impl<P: Evaluate + 'static> WriterKey for Under<P> {
    fn key_id(&self) -> KeyId {
        self.key.key_id()
    }

    fn encrypt(&self, spec: &IndexSpec, rows: &[f32], seed: &Secret) -> Result<EncryptedBytes> {
        let (public, count) = (&self.key, rows.len() / spec.dimension());
        let layout = layout::choose(spec, count, public.message_bits(), self.packs)?;
        let vectors = Vectors::quantize(&layout, rows)?;
        let encrypted = EncryptedVectors::encrypt(&layout, public, &vectors)?;
        Ok((encrypted.to_bytes(public)?, check::witness(seed, &vectors, layout.layout())))
    }
}
