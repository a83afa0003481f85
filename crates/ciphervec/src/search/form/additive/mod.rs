//! Additive form: rows as ciphertexts of an additively homomorphic scheme, plain queries (`docs/additive.md`). Both sides.
//!
//! The schemes have types of their own for keys and ciphertexts. An index learns its scheme from its description, at run
//! time; `schemes.rs` is generic over them, and nothing else here knows which scheme stands behind a key.

pub mod gallery;
pub mod layout;
pub mod schemes;
mod server;

use super::contract::{SearchForm, ServerForm, ServerHalf};
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
}

impl ServerForm for Additive {
    fn server(&self, spec: &IndexSpec) -> Result<Arc<dyn ServerHalf>> {
        Ok(Arc::new(server::AdditiveServer::new(spec.clone(), *self)))
    }
}
