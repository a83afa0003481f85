//! Plain form: float32 rows and queries, nothing encrypted. A test oracle and a baseline. Both sides.

#[cfg(feature = "client")]
mod key_holder;
mod server;

#[cfg(feature = "client")]
use super::contract::{AnswerBlocks, KeyHolderHalf};
use super::contract::{SearchForm, ServerHalf};
use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::message::WordsAsked;
use std::sync::Arc;

/// Bytes of a number.
const WORD: usize = 4;

/// The form of mode `open`.
pub(in crate::search) struct Plain;

impl SearchForm for Plain {
    #[cfg(feature = "client")]
    fn seals(&self) -> bool {
        false
    }

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

    #[cfg(feature = "client")]
    fn answer_blocks(
        &self,
        _spec: &IndexSpec,
        _level: u8,
        _words: Option<&WordsAsked>,
    ) -> Result<Option<AnswerBlocks>> {
        Ok(Some(AnswerBlocks { rows: 1, bytes: WORD }))
    }

    fn server(&self, spec: &IndexSpec) -> Result<Arc<dyn ServerHalf>> {
        Ok(Arc::new(server::PlainServer::new(spec.clone())))
    }

    #[cfg(feature = "client")]
    fn key_holder(&self, spec: &IndexSpec, _mask_seed: [u8; 32]) -> Result<Box<dyn KeyHolderHalf>> {
        Ok(Box::new(key_holder::PlainKeyHolder::new(spec.clone())))
    }
}
