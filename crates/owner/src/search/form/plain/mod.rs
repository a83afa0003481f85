//! Plain form: float32 rows and queries, nothing encrypted. A test oracle and a baseline. Both sides.

mod key_holder;

use super::contract::{AnswerBlocks, KeyHolderHalf, OwnerForm, RowEncryptor, SealingForm, held};
use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::message::WordsAsked;
pub use ciphervec::search::form::plain::*;

impl OwnerForm for Plain {
    fn seals(&self) -> bool {
        false
    }

    fn answer_blocks(
        &self,
        _spec: &IndexSpec,
        _level: u8,
        _words: Option<&WordsAsked>,
    ) -> Result<Option<AnswerBlocks>> {
        Ok(Some(AnswerBlocks { rows: 1, bytes: WORD }))
    }

    fn key_holder(&self, spec: &IndexSpec, _mask_seed: [u8; 32]) -> Result<Box<dyn KeyHolderHalf>> {
        Ok(Box::new(key_holder::PlainKeyHolder::new(spec.clone())))
    }
}

impl SealingForm for Plain {
    fn encryptor<'a>(&self, holder: &'a dyn KeyHolderHalf) -> Result<&'a dyn RowEncryptor> {
        held::<key_holder::PlainKeyHolder>(holder)
    }

    fn writer(
        &self,
        spec: &IndexSpec,
        _mask_seed: [u8; 32],
        index_key: &[u8],
    ) -> Result<Box<dyn RowEncryptor>> {
        self.check_index_key(spec, index_key)?;
        Ok(Box::new(key_holder::PlainKeyHolder::new(spec.clone())))
    }
}
