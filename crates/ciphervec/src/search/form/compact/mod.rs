//! Compact form: encrypted rows with words of their own, plain integer queries (`docs/sealed.md`, section 1). Both sides.

#[cfg(feature = "client")]
mod context;
#[cfg(feature = "client")]
mod key_holder;
#[cfg(feature = "client")]
mod open;
mod prune;
#[cfg(feature = "client")]
mod queries;
#[cfg(feature = "client")]
mod scale;
mod server;

#[cfg(feature = "client")]
use super::contract::{AnswerBlocks, KeyHolderHalf, PlainQueries};
use super::contract::{Pruned, SearchForm, ServerHalf};
use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::message::WordsAsked;
use ciphervec_he::lattice::compact::Width;
use std::sync::Arc;

impl SearchForm for Width {
    fn words_len(&self, spec: &IndexSpec, rows: usize, _level: u8) -> Result<Option<usize>> {
        Ok(Some(Width::words_len(*self, rows, spec.dimension())))
    }

    fn answer_len(
        &self,
        _spec: &IndexSpec,
        rows: usize,
        _level: u8,
        _words: Option<&WordsAsked>,
    ) -> Result<Option<usize>> {
        Ok(Some(rows.saturating_mul(self.word_bytes())))
    }

    #[cfg(feature = "client")]
    fn answer_blocks(
        &self,
        _spec: &IndexSpec,
        _level: u8,
        _words: Option<&WordsAsked>,
    ) -> Result<Option<AnswerBlocks>> {
        let rows = self.degree();
        Ok(Some(AnswerBlocks { rows, bytes: rows * self.word_bytes() }))
    }

    fn pruned(&self) -> Option<&dyn Pruned> {
        Some(self)
    }

    fn server(&self, spec: &IndexSpec) -> Result<Arc<dyn ServerHalf>> {
        Ok(Arc::new(server::CompactServer::new(spec.clone(), *self)))
    }

    #[cfg(feature = "client")]
    fn plain_queries(&self) -> Option<&dyn PlainQueries> {
        Some(self)
    }

    #[cfg(feature = "client")]
    fn key_holder(&self, spec: &IndexSpec, mask_seed: [u8; 32]) -> Result<Box<dyn KeyHolderHalf>> {
        let key_holder = key_holder::CompactKeyHolder::new(spec.clone(), *self, mask_seed)?;
        Ok(Box::new(key_holder))
    }
}
