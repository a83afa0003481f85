//! The client of strategy `histogram`: it encrypts how often documents name each row, and decrypts
//! the sums.

use super::messages::{HistogramAnswer, HistogramQuery};
use crate::error::{Error, Result};
use crate::lookup::documents::{Documents, row_of};
use crate::lookup::serialize::expect_key;
use crate::lookup::{Pooling, Spec};
use ciphervec_he_secret::keys::{MasterKey, Purpose};
use ciphervec_he_secret::lattice::Plaintext;
use ciphervec_he_secret::lattice::histogram::{self, Hint, Histogram, Masks, Opener};
use core::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// The public part of a client's key: its masks, and what the server makes of them.
pub(in crate::lookup) struct HistogramClient {
    id: [u8; 16],
    scheme: Box<Histogram>,
    mask_seed: [u8; 32],
    masks: Masks,
    /// It never changes, so it is asked for once.
    hint: Mutex<Option<Arc<Hint>>>,
}

impl HistogramClient {
    pub fn new(spec: &Spec, id: &[u8; 16], master: &MasterKey, scheme: Box<Histogram>) -> Self {
        let mask_seed = *master.derive(Purpose::MaskSeed, &[id, &spec.param_id().0]).expose();
        let masks = Masks::new(&scheme, &mask_seed, spec.dimension());
        HistogramClient { id: *id, scheme, mask_seed, masks, hint: Mutex::new(None) }
    }

    /// Every document under a secret of its own.
    pub fn query(
        &self,
        spec: &Spec,
        master: &MasterKey,
        documents: &Documents<'_>,
    ) -> Result<Vec<u8>> {
        let counts = Histograms::new(spec, documents);
        let (nonce, words) = histogram::seal(&self.scheme, &self.masks, master, &self.id, &counts)?;
        let query = HistogramQuery {
            key: master.key_id(),
            nonce,
            mask_seed: self.mask_seed,
            wants_hint: self.known_hint().is_none(),
            documents: documents.len(),
            words: &words,
        };
        Ok(query.to_bytes(spec))
    }

    /// The sums of an answer, rounded.
    pub fn decode(&self, spec: &Spec, master: &MasterKey, answer: &[u8]) -> Result<Vec<f64>> {
        let answer = HistogramAnswer::from_bytes(spec, &self.scheme, answer)?;
        expect_key(master.key_id(), answer.key)?;
        let hint = match answer.hint {
            Some(hint) => self.keep_hint(hint),
            None => self.known_hint().ok_or_else(|| Error::Lookup {
                operation: "decode",
                detail: "this client has not seen the hint that belongs to the answer, because \
                    another one with the same \
                         key asked; let the one that asked decode it, or ask again"
                    .into(),
            })?,
        };
        let opener = Opener::derive(&self.scheme, master, &self.id, answer.nonce);
        let opened = opener.open(&hint, &answer.sums);
        let read = |value| spec.scales().map_or(0.0, |scales| scales.read(value));
        Ok(opened.into_iter().map(read).collect())
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

/// How often each document names each row, scaled: made row by row, so that no second copy of all
/// of them is held.
struct Histograms<'a> {
    spec: &'a Spec,
    documents: &'a Documents<'a>,
    /// Offsets and indices, which tell one call from another.
    content: Zeroizing<Vec<u8>>,
}

impl<'a> Histograms<'a> {
    fn new(spec: &'a Spec, documents: &'a Documents<'a>) -> Self {
        let numbers = documents.offsets().len() + documents.indices().len();
        let mut content = Zeroizing::new(Vec::with_capacity(8 * numbers));
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
        let mut length = 0usize;
        for token in self.documents.range(document) {
            let indices = self.documents.token(token);
            length += usize::from(indices.first().is_some_and(|index| row_of(*index).is_some()));
            for (table, index) in indices.iter().enumerate() {
                let place = row_of(*index).map(|row| table * self.spec.rows() + row);
                if let Some(place) = place.filter(|place| dims.contains(place)) {
                    out[place - dims.start] += 1;
                }
            }
        }
        let count = self.spec.scales().map_or(1.0, |scales| scales.count);
        let mean = self.spec.pooling() == Pooling::Mean;
        let scale = if mean { count / length.max(1) as f64 } else { count };
        for value in out.iter_mut() {
            *value = (*value as f64 * scale).round_ties_even() as i64;
        }
    }
}
