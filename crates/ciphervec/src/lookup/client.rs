//! The client's half. Indices enter, queries leave; answers enter, what was looked up leaves. Holds the keys.

use super::bytes::{Answer, Query};
use super::documents::Documents;
use super::spec::{Pooling, Spec, row_of};
use crate::error::{Error, Result};
use ciphervec_he::keys::{MasterKey, Purpose};
use ciphervec_he::sealed::Plaintext;
use ciphervec_he::sealed::counts::{self, Counts, Hint, Masks, Opener};
use core::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::{Zeroize, Zeroizing};

/// Who asks: a key of 32 bytes for one table. Every query draws secrets of its own from it.
pub struct Client {
    spec: Spec,
    id: [u8; 16],
    master: MasterKey,
    scheme: Counts,
    mask_seed: [u8; 32],
    masks: Masks,
    /// What the server makes of the masks: it never changes, so it is asked for once.
    hint: Mutex<Option<Arc<Hint>>>,
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Client({}, redacted)", self.master.key_id())
    }
}

impl Client {
    /// A client with a fresh key for the tables that a server described.
    ///
    /// # Errors
    /// [`ciphervec_he::Error::Randomness`].
    pub fn generate(spec: Spec) -> Result<Self> {
        Self::new(spec, MasterKey::generate()?)
    }

    pub(super) fn new(spec: Spec, master: MasterKey) -> Result<Self> {
        let id = spec.id();
        let scheme = Counts::new(spec.options.word_bytes)?;
        let mask_seed = *master.derive(Purpose::MaskSeed, &[&id, &spec.params.0]).expose();
        let masks = Masks::new(&scheme, &mask_seed, spec.dimension());
        Ok(Client { spec, id, master, scheme, mask_seed, masks, hint: Mutex::new(None) })
    }

    /// What is looked up in.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    pub(super) fn master(&self) -> &MasterKey {
        &self.master
    }

    /// Sixteen public bytes that name key and tables.
    pub fn label(&self) -> [u8; 16] {
        let mut label = self.id;
        label[..8].copy_from_slice(&self.master.key_id().0);
        label
    }

    /// Documents, encrypted: the bytes of a query.
    ///
    /// # Errors
    /// [`Error::Lookup`] for indices that the tables do not have or documents over the limit;
    /// [`ciphervec_he::Error::Randomness`].
    pub fn query(&self, documents: &Documents<'_>) -> Result<Vec<u8>> {
        documents.check(&self.spec)?;
        let counts = Histograms::new(&self.spec, documents);
        let (nonce, words) =
            counts::seal(&self.scheme, &self.masks, &self.master, &self.id, &counts)?;
        let query = Query {
            key: self.master.key_id(),
            nonce,
            mask_seed: self.mask_seed,
            wants_hint: self.known_hint().is_none(),
            documents: documents.len(),
            words: &words,
        };
        Ok(query.to_bytes(&self.spec))
    }

    /// What an answer says: `d` numbers a document, document after document, each off by at most [`Spec::error_bound`].
    ///
    /// # Errors
    /// Damaged or malformed bytes; an answer for another key, another table or other settings; [`Error::Lookup`] for one
    /// without a hint where none was kept.
    pub fn decode(&self, answer: &[u8]) -> Result<Vec<f64>> {
        let answer = Answer::from_bytes(&self.spec, &self.scheme, answer)?;
        if answer.key != self.master.key_id() {
            return Err(ciphervec_he::Error::WrongKey {
                what: "the answer",
                expected: self.master.key_id(),
                actual: answer.key,
            }
            .into());
        }
        let hint = match answer.hint {
            Some(hint) => self.keep_hint(hint),
            None => self.known_hint().ok_or_else(|| Error::Lookup {
                operation: "decode",
                detail: "this client has not seen the hint that belongs to the answer, because another one with the same \
                         key asked; let the one that asked decode it, or ask again"
                    .into(),
            })?,
        };
        let opener = Opener::derive(&self.scheme, &self.master, &self.id, answer.nonce);
        let opened = opener.open(&hint, &answer.sums);
        Ok(opened.into_iter().map(|value| self.spec.scales.read(value)).collect())
    }

    fn known_hint(&self) -> Option<Arc<Hint>> {
        self.hint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep_hint(&self, hint: Hint) -> Arc<Hint> {
        let hint = Arc::new(hint);
        *self.hint.lock().unwrap_or_else(PoisonError::into_inner) = Some(hint.clone());
        hint
    }
}

/// How often each document names each row, scaled: made row by row, so that no second copy of all of them is held.
struct Histograms<'a> {
    spec: &'a Spec,
    documents: &'a Documents<'a>,
    /// Offsets and indices, which tell one call from another.
    content: Zeroizing<Vec<u8>>,
}

impl<'a> Histograms<'a> {
    fn new(spec: &'a Spec, documents: &'a Documents<'a>) -> Self {
        let mut content = Zeroizing::new(Vec::with_capacity(
            8 * (documents.offsets().len() + documents.indices().len()),
        ));
        for offset in documents.offsets() {
            content.extend_from_slice(&(*offset as u64).to_le_bytes());
        }
        content.extend_from_slice(bytemuck::cast_slice(documents.indices()));
        Histograms { spec, documents, content }
    }
}

impl Plaintext for Histograms<'_> {
    fn rows(&self) -> usize {
        self.documents.len()
    }

    fn dimension(&self) -> usize {
        self.spec.dimension()
    }

    fn content(&self) -> &[u8] {
        &self.content
    }

    fn fill(&self, document: usize, dims: Range<usize>, out: &mut [i64]) {
        out.fill(0);
        let tokens = self.documents.range(document);
        let length = tokens.len();
        for token in tokens {
            for (table, index) in self.documents.token(token).iter().enumerate() {
                let place = row_of(*index).map(|row| table * self.spec.rows() + row);
                if let Some(place) = place.filter(|place| dims.contains(place)) {
                    out[place - dims.start] += 1;
                }
            }
        }
        let count = self.spec.scales.count;
        let scale =
            if self.spec.pooling() == Pooling::Mean { count / length.max(1) as f64 } else { count };
        for value in out.iter_mut() {
            *value = (*value as f64 * scale).round_ties_even() as i64;
        }
    }
}

impl Drop for Histograms<'_> {
    fn drop(&mut self) {
        self.content.zeroize();
    }
}
