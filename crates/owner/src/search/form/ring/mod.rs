//! Ring form: encrypted queries, several rows in a polynomial, plain or encrypted (`docs/sealed.md`, section 2). Both sides.

mod key_holder;
mod open;
mod packing;
mod scale;

use super::contract::{AnswerBlocks, KeyHolderHalf, OwnerForm, RowEncryptor, SealingForm, held};
use crate::error::Result;
use crate::index::form::Rows;
use crate::index::spec::IndexSpec;
use crate::search::message::WordsAsked;
use ciphervec_he_secret::lattice::ring::Layout;
use packing::answer_words;

impl OwnerForm for Rows {
    fn answer_blocks(
        &self,
        spec: &IndexSpec,
        level: u8,
        words: Option<&WordsAsked>,
    ) -> Result<Option<AnswerBlocks>> {
        let rows = Layout::new(spec.dimension(), level)?.vectors_per_block();
        let bytes = answer_words(words, level)?.block_len(rows);
        Ok(Some(AnswerBlocks { rows, bytes }))
    }

    fn key_holder(&self, spec: &IndexSpec, mask_seed: [u8; 32]) -> Result<Box<dyn KeyHolderHalf>> {
        Ok(Box::new(key_holder::RingKeyHolder::new(spec.clone(), *self, mask_seed)?))
    }
}

impl SealingForm for Rows {
    fn encryptor<'a>(&self, holder: &'a dyn KeyHolderHalf) -> Result<&'a dyn RowEncryptor> {
        held::<key_holder::RingKeyHolder>(holder)
    }

    fn writer(
        &self,
        spec: &IndexSpec,
        mask_seed: [u8; 32],
        index_key: &[u8],
    ) -> Result<Box<dyn RowEncryptor>> {
        self.check_index_key(spec, index_key)?;
        Ok(Box::new(key_holder::RingKeyHolder::new(spec.clone(), *self, mask_seed)?))
    }
}
