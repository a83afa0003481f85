//! Plain form: float32 rows and queries, nothing encrypted. A test oracle and a baseline. Both sides.

mod server;

use super::contract::{SearchForm, ServerForm, ServerHalf};
use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::message::WordsAsked;
use std::sync::Arc;

/// Bytes of a number.
pub const WORD: usize = 4;

/// The form of mode `open`.
pub struct Plain;

impl SearchForm for Plain {
    fn encrypts_rows(&self) -> bool {
        false
    }

    fn words_len(&self, spec: &IndexSpec, rows: usize, _level: u8) -> Result<Option<usize>> {
        Ok(Some(rows.saturating_mul(spec.dimension()).saturating_mul(WORD)))
    }

    fn answer_len(
        &self,
        _spec: &IndexSpec,
        rows: usize,
        _level: u8,
        _words: Option<&WordsAsked>,
    ) -> Result<Option<usize>> {
        Ok(Some(rows.saturating_mul(WORD)))
    }
}

impl ServerForm for Plain {
    fn server(&self, spec: &IndexSpec) -> Result<Arc<dyn ServerHalf>> {
        Ok(Arc::new(server::PlainServer::new(spec.clone())))
    }
}
