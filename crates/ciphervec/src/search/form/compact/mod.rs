//! Compact form: encrypted rows with words of their own, plain integer queries (`docs/sealed.md`, section 1). Both sides.

mod prune;
pub mod server;

use super::contract::{Pruned, SearchForm, ServerForm, ServerHalf};
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

    fn pruned(&self) -> Option<&dyn Pruned> {
        Some(self)
    }
}

impl ServerForm for Width {
    fn server(&self, spec: &IndexSpec) -> Result<Arc<dyn ServerHalf>> {
        Ok(Arc::new(server::CompactServer::new(spec.clone(), *self)))
    }
}
