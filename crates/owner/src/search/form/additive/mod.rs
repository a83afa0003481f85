//! Additive form: rows as ciphertexts of an additively homomorphic scheme, plain queries (`docs/additive.md`). Both sides.
//!
//! The schemes have types of their own for keys and ciphertexts. An index learns its scheme from its description, at run
//! time; `schemes.rs` is generic over them, and nothing else here knows which scheme stands behind a key.

mod check;
mod key_holder;
mod key_pair;
mod layout;
mod queries;
mod secret_schemes;
mod writer;
mod writer_key;

use super::contract::{KeyHolderHalf, OwnerForm, PlainQueries, RowEncryptor, SealingForm, held};
use crate::error::Result;
use crate::index::form::Additive;
use crate::index::spec::IndexSpec;
use ciphervec::search::form::additive::schemes::read_public_key;

impl OwnerForm for Additive {
    fn plain_queries(&self) -> Option<&dyn PlainQueries> {
        Some(self)
    }

    fn key_holder(&self, spec: &IndexSpec, _mask_seed: [u8; 32]) -> Result<Box<dyn KeyHolderHalf>> {
        Ok(Box::new(key_holder::AdditiveKeyHolder::new(spec.clone(), *self)))
    }

    fn check_index_key(&self, _spec: &IndexSpec, bytes: &[u8]) -> Result<()> {
        read_public_key(self, bytes).map(drop)
    }
}

impl SealingForm for Additive {
    fn encryptor<'a>(&self, holder: &'a dyn KeyHolderHalf) -> Result<&'a dyn RowEncryptor> {
        held::<key_holder::AdditiveKeyHolder>(holder)
    }

    fn writer(
        &self,
        spec: &IndexSpec,
        _mask_seed: [u8; 32],
        index_key: &[u8],
    ) -> Result<Box<dyn RowEncryptor>> {
        Ok(Box::new(writer::AdditiveWriter::new(spec.clone(), self, index_key)?))
    }
}
