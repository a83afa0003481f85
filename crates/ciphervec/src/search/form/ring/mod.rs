//! Ring form: encrypted queries, several rows in a polynomial, plain or encrypted (`docs/sealed.md`, section 2). Both sides.

mod clusters;
mod folds;
mod halves;
pub mod packing;
mod server;

use super::contract::{SearchForm, ServerForm, ServerHalf};
use super::halves::HalfAnswers;
use crate::error::Result;
use crate::index::form::Rows;
use crate::index::spec::IndexSpec;
use crate::search::message::WordsAsked;
use ciphervec_he::lattice::retrieval::ChoiceShape;
use ciphervec_he::lattice::ring::Layout;
use packing::answer_words;
use std::sync::Arc;

impl SearchForm for Rows {
    fn encrypts_rows(&self) -> bool {
        *self == Rows::Encrypted
    }

    fn has_levels(&self) -> bool {
        true
    }

    fn words_len(&self, spec: &IndexSpec, rows: usize, level: u8) -> Result<Option<usize>> {
        Ok(Some(Layout::new(spec.dimension(), level)?.packed_len(rows)))
    }

    fn answer_len(
        &self,
        spec: &IndexSpec,
        rows: usize,
        level: u8,
        words: Option<&WordsAsked>,
    ) -> Result<Option<usize>> {
        let layout = Layout::new(spec.dimension(), level)?;
        Ok(Some(answer_words(words, level)?.answer_len(&layout, rows)))
    }

    fn sums_len(&self, level: u8, words: Option<&WordsAsked>) -> Result<usize> {
        let words = answer_words(words, level)?;
        Ok(if *self == Rows::Encrypted { words.sums_len() } else { 0 })
    }

    fn halves(&self) -> Option<&dyn HalfAnswers> {
        Some(self)
    }

    fn working_len(&self, spec: &IndexSpec, levels: &[u8], queries: usize) -> Result<usize> {
        server::working_len(spec, levels, queries)
    }

    fn fold_len(
        &self,
        spec: &IndexSpec,
        rows: usize,
        level: u8,
        fold: &ChoiceShape,
    ) -> Result<usize> {
        Ok(fold.working_len(Layout::new(spec.dimension(), level)?.blocks(rows))?)
    }

    fn may_pack(&self, spec: &IndexSpec, rows: usize, level: u8, total: usize) -> Result<bool> {
        packing::may_pack(spec.dimension(), rows, level, total)
    }
}

impl ServerForm for Rows {
    fn server(&self, spec: &IndexSpec) -> Result<Arc<dyn ServerHalf>> {
        Ok(Arc::new(server::RingServer::new(spec.clone(), *self)?))
    }
}
