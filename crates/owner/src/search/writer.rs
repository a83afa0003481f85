//! Seals segments that only the owner opens, by a writer's card. It holds no secret between two calls.
//!
//! Every segment is sealed under 32 bytes drawn for it, which are wrapped to the owner and forgotten. Whoever takes the
//! writer over learns what it is sealing at that moment and nothing that it sealed before.

use super::card::WriterCard;
use super::form::{self, Expected, RowEncryptor};
use super::root_key::SegmentRootKey;
use super::seal::{SealedSegment, seal};
use super::wrap::wrap;
use crate::error::{Error, Result};
use crate::protect::id::Id;
use crate::protect::records::{Place, seal_records};
use ciphervec_he_secret::keys::MasterKey;
use std::sync::Arc;

/// Seals for one index, and opens nothing.
pub struct Writer {
    card: WriterCard,
    encryptor: Box<dyn RowEncryptor>,
}

impl core::fmt::Debug for Writer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Writer({:?})", self.card)
    }
}

/// What one call of [`Writer::seal`] made: all of it is for the server to keep.
pub struct WrittenSegment {
    /// The segment and its sidecar.
    pub sealed: SealedSegment,
    /// Metadata and documents, encrypted; `None` where no row has any.
    pub records: Option<Vec<u8>>,
    /// The segment's key, wrapped to the owner.
    pub wrap: Vec<u8>,
}

impl Writer {
    /// A writer for the index of `card`.
    ///
    /// # Errors
    /// If the card's parameters or its public key were refused.
    pub fn new(card: WriterCard) -> Result<Self> {
        let spec = &card.spec;
        let encryptor = form::sealing(spec).writer(spec, card.mask_seed, &card.index_key)?;
        Ok(Writer { card, encryptor })
    }

    /// The card.
    pub fn card(&self) -> &WriterCard {
        &self.card
    }

    /// Seals rows (row-major, `ids.len() × dimension`) under a key that is drawn now, wrapped and forgotten. `payloads`
    /// are metadata and documents, one a row, or none at all. `expected_rows` is how many rows the index will hold: it
    /// chooses the packing. `time` is now, in milliseconds since 1970: the owner tells by it, long after, what came late from
    /// what was sent twice.
    ///
    /// # Errors
    /// Rows that fail the checks, another number of ids or payloads than rows, an id given twice, no rows, or too many;
    /// no randomness.
    pub fn seal(
        &self,
        rows: &[f32],
        ids: &[Id],
        payloads: Vec<Vec<u8>>,
        expected_rows: usize,
        time: u64,
    ) -> Result<WrittenSegment> {
        if !payloads.is_empty() && payloads.len() != ids.len() {
            return Err(Error::Range {
                what: "the number of records",
                expected: format!("{}, one a row, or none", ids.len()),
                actual: payloads.len().to_string(),
            });
        }
        let spec = &self.card.spec;
        let master = Arc::new(MasterKey::generate()?);
        let root = SegmentRootKey::new(Arc::clone(&master), self.card.owner, spec);
        let (encryptor, expected) = (self.encryptor.as_ref(), Expected::rows(expected_rows));
        let sealed = seal(spec, &root, encryptor, rows, ids, &expected, &self.card.centre)?;
        let records = if payloads.iter().all(Vec::is_empty) {
            None
        } else {
            let binding = spec.binding();
            let place = Place { collection: &binding, segment: &sealed.id.0 };
            let rows: Vec<(Id, Vec<u8>)> = ids.iter().cloned().zip(payloads).collect();
            Some(seal_records(root.aead(), place, &rows)?)
        };
        let (owner, writer) = (self.card.owner, self.card.writer());
        let wrap = wrap(spec, &self.card.pair, owner, writer, sealed.id, master.expose(), time)?;
        Ok(WrittenSegment { sealed, records, wrap })
    }
}
