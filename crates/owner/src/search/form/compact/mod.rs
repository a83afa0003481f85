//! Compact form: encrypted rows with words of their own, plain integer queries (`docs/sealed.md`, section 1). Both sides.

mod context;
mod key_holder;
mod open;
mod queries;
mod scale;

use super::contract::{
    AnswerBlocks, KeyHolderHalf, OwnerForm, PlainQueries, RowEncryptor, SealingForm, held,
};
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

impl SealingForm for Width {
    fn encryptor<'a>(&self, holder: &'a dyn KeyHolderHalf) -> Result<&'a dyn RowEncryptor> {
        held::<key_holder::CompactKeyHolder>(holder)
    }

    fn writer(
        &self,
        spec: &IndexSpec,
        mask_seed: [u8; 32],
        index_key: &[u8],
    ) -> Result<Box<dyn RowEncryptor>> {
        self.check_index_key(spec, index_key)?;
        Ok(Box::new(key_holder::CompactKeyHolder::new(spec.clone(), *self, mask_seed)?))
    }
}
