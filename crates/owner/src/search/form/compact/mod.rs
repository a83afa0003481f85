//! Compact form: encrypted rows with words of their own, plain integer queries (`docs/sealed.md`, section 1). Both sides.

mod context;
mod key_holder;
mod open;
mod queries;
mod scale;

use super::contract::{AnswerBlocks, KeyHolderHalf, OwnerForm, PlainQueries};
use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::message::WordsAsked;
use ciphervec_he_secret::lattice::compact::Width;

impl OwnerForm for Width {
    fn answer_blocks(
        &self,
        _spec: &IndexSpec,
        _level: u8,
        _words: Option<&WordsAsked>,
    ) -> Result<Option<AnswerBlocks>> {
        let rows = self.degree();
        Ok(Some(AnswerBlocks { rows, bytes: rows * self.word_bytes() }))
    }

    fn plain_queries(&self) -> Option<&dyn PlainQueries> {
        Some(self)
    }

    fn key_holder(&self, spec: &IndexSpec, mask_seed: [u8; 32]) -> Result<Box<dyn KeyHolderHalf>> {
        let key_holder = key_holder::CompactKeyHolder::new(spec.clone(), *self, mask_seed)?;
        Ok(Box::new(key_holder))
    }
}
