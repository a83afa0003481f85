//! Plain form: float32 rows and queries, nothing encrypted. A test oracle and a baseline. Both sides.

mod key_holder;

use super::contract::{AnswerBlocks, KeyHolderHalf, OwnerForm};
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
