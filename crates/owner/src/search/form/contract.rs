//! Contract of a form's half that has keys: what the form-blind search asks of each. Owner only.
//!
//! A form is a folder beside this file and a row in [`super::of`]. Heads of segments, filters, ids, norms and ranking are
//! the search's; words, ciphertexts, keys and scores are the form's.

pub use super::key_holder::{AnswerFormat, Exactness, Expected, PackingChoice};
pub(in crate::search) use super::key_holder::{
    EncodedQueries, EncryptedRows, KeyHolderHalf, KeyPairSlot, MaskedQueries, PlainQueries,
    RowEncryptor, StoredRows, select_rows,
};
pub(in crate::search) use super::opening::{
    AnswerBlocks, AnswerPart, Estimates, ExactCosine, Kept, OpenedSegment, Opening, RowSum, Secrets,
};
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::search::message::WordsAsked;
pub use ciphervec::search::form::contract::*;
use ciphervec_he_secret::wire::{Kind, Reader};
use core::any::Any;

/// A form as an index's description names it, with the way to the half that has keys.
pub(in crate::search) trait OwnerForm: SearchForm {
    /// Whether anything is encrypted, and there is a key to seal under.
    fn seals(&self) -> bool {
        true
    }

    /// The blocks that one query's answer is made of; `None` where the answers to all queries are one.
    ///
    /// # Errors
    /// As [`Self::answer_len`].
    fn answer_blocks(
        &self,
        _spec: &IndexSpec,
        _level: u8,
        _words: Option<&WordsAsked>,
    ) -> Result<Option<AnswerBlocks>> {
        Ok(None)
    }

    /// What needs no key at all because queries are plain, where they are.
    fn plain_queries(&self) -> Option<&dyn PlainQueries> {
        None
    }

    /// The key holder's half of an index, under the public masks of `mask_seed`.
    fn key_holder(&self, spec: &IndexSpec, mask_seed: [u8; 32]) -> Result<Box<dyn KeyHolderHalf>>;

    /// Refuses bytes that are not the public key of an index; in most forms there is none.
    fn check_index_key(&self, _spec: &IndexSpec, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let what = Kind::PublicKey.as_str();
        Err(Reader::new(what, bytes).error("the lattice scheme has no public key").into())
    }
}

/// A form, with the way to what encrypts rows. Apart from what a searching key holder asks of it, so that the module of a page that only
/// searches has none of that code.
pub(in crate::search) trait SealingForm {
    /// What encrypts rows for the holder of the key, which [`OwnerForm::key_holder`] of this form made.
    ///
    /// # Errors
    /// A holder of another form.
    fn encryptor<'a>(&self, holder: &'a dyn KeyHolderHalf) -> Result<&'a dyn RowEncryptor>;

    /// The half that encrypts rows and opens nothing; `index_key` is the public key of the index's key pair.
    ///
    /// # Errors
    /// Parameters, or a public key, that were refused.
    fn writer(
        &self,
        spec: &IndexSpec,
        mask_seed: [u8; 32],
        index_key: &[u8],
    ) -> Result<Box<dyn RowEncryptor>>;
}

/// [`SealingForm::encryptor`] of a form whose key holders are these.
pub(in crate::search) fn held<T: RowEncryptor + 'static>(
    holder: &dyn KeyHolderHalf,
) -> Result<&dyn RowEncryptor> {
    let holder: &dyn Any = holder;
    let other = || Error::choice("a key holder", "one of the index's form", "another one");
    holder.downcast_ref::<T>().map(|one| one as &dyn RowEncryptor).ok_or_else(other)
}

/// The error of a form whose queries are not plain.
pub(in crate::search) fn not_probed(spec: &IndexSpec) -> Error {
    let known = "sealed-index, whose queries are plain";
    Error::choice("the mode to probe", known, spec.mode().as_str())
}
