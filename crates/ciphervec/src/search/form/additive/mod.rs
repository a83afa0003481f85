//! Additive form: rows as ciphertexts of an additively homomorphic scheme, plain queries (`docs/additive.md`). Both sides.
//!
//! The schemes have types of their own for keys and ciphertexts. An index learns its scheme from its description, at run
//! time; `schemes.rs` is generic over them, and nothing else here knows which scheme stands behind a key.

#[cfg(feature = "client")]
mod check;
mod gallery;
#[cfg(feature = "client")]
mod key_holder;
#[cfg(feature = "client")]
mod key_pair;
mod layout;
#[cfg(feature = "client")]
mod queries;
mod schemes;
#[cfg(feature = "client")]
mod secret_schemes;
mod server;
#[cfg(feature = "client")]
mod writer;

#[cfg(feature = "client")]
use super::contract::{KeyHolderHalf, PlainQueries, RowEncryptor};
use super::contract::{SearchForm, ServerHalf};
use crate::error::Result;
use crate::index::form::Additive;
use crate::index::spec::IndexSpec;
use crate::search::message::WordsAsked;
use std::sync::Arc;

impl SearchForm for Additive {
    /// Ciphertexts follow the head in a frame of their own.
    fn words_len(&self, _spec: &IndexSpec, _rows: usize, _level: u8) -> Result<Option<usize>> {
        Ok(None)
    }

    /// One frame holds the scores of all queries.
    fn answer_len(
        &self,
        _spec: &IndexSpec,
        _rows: usize,
        _level: u8,
        _words: Option<&WordsAsked>,
    ) -> Result<Option<usize>> {
        Ok(None)
    }

    fn server(&self, spec: &IndexSpec) -> Result<Arc<dyn ServerHalf>> {
        Ok(Arc::new(server::AdditiveServer::new(spec.clone(), *self)))
    }

    #[cfg(feature = "client")]
    fn plain_queries(&self) -> Option<&dyn PlainQueries> {
        Some(self)
    }

    #[cfg(feature = "client")]
    fn key_holder(&self, spec: &IndexSpec, _mask_seed: [u8; 32]) -> Result<Box<dyn KeyHolderHalf>> {
        Ok(Box::new(key_holder::AdditiveKeyHolder::new(spec.clone(), *self)))
    }

    #[cfg(feature = "client")]
    fn writer(
        &self,
        spec: &IndexSpec,
        _mask_seed: [u8; 32],
        index_key: &[u8],
    ) -> Result<Box<dyn RowEncryptor>> {
        Ok(Box::new(writer::AdditiveWriter::new(spec.clone(), self, index_key)?))
    }

    #[cfg(feature = "client")]
    fn check_index_key(&self, _spec: &IndexSpec, bytes: &[u8]) -> Result<()> {
        schemes::read_public_key(self, bytes).map(drop)
    }
}
