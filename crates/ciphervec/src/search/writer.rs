//! Writer: rows and a credential enter, segments that only the owner opens leave. It holds no secret between two calls.
//!
//! Every segment is sealed under 32 bytes drawn for it, which are wrapped to the owner and forgotten. Whoever takes the
//! writer over learns what it is sealing at that moment and nothing that it sealed before.

use super::credential::WriterCredential;
use super::form::{self, RowEncryptor};
use super::root_key::SegmentRootKey;
use super::seal::{SealedSegment, seal};
use super::wrap::wrap;
use crate::error::{Error, Result};
use crate::protect::id::Id;
use crate::protect::records::{Place, RecordBatch};
use ciphervec_he::keys::MasterKey;
use std::sync::Arc;

/// Seals for one index, and opens nothing.
pub struct Writer {
    credential: WriterCredential,
    encryptor: Box<dyn RowEncryptor>,
}

impl core::fmt::Debug for Writer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Writer({:?})", self.credential)
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
    /// A writer for the index of `credential`.
    ///
    /// # Errors
    /// If the credential's parameters or its public key were refused.
    pub fn new(credential: WriterCredential) -> Result<Self> {
        let spec = &credential.spec;
        let encryptor = form::of(spec).writer(spec, credential.mask_seed, &credential.index_key)?;
        Ok(Writer { credential, encryptor })
    }

    /// The credential.
    pub fn credential(&self) -> &WriterCredential {
        &self.credential
    }

    /// Seals rows (row-major, `ids.len() × dimension`) under a key that is drawn now, wrapped and forgotten. `payloads`
    /// are metadata and documents, one a row, or none at all. `expected_rows` is how many rows the index will hold: it
    /// chooses the packing.
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
    ) -> Result<WrittenSegment> {
        if !payloads.is_empty() && payloads.len() != ids.len() {
            return Err(Error::Range {
                what: "the number of records",
                expected: format!("{}, one a row, or none", ids.len()),
                actual: payloads.len().to_string(),
            });
        }
        let spec = &self.credential.spec;
        let master = Arc::new(MasterKey::generate()?);
        let root = SegmentRootKey::new(Arc::clone(&master), self.credential.owner, spec);
        let sealed = seal(spec, &root, self.encryptor.as_ref(), rows, ids, expected_rows)?;
        let records = if payloads.iter().all(Vec::is_empty) {
            None
        } else {
            let binding = spec.binding();
            let place = Place { collection: &binding, segment: &sealed.id.0 };
            let rows: Vec<(Id, Vec<u8>)> = ids.iter().cloned().zip(payloads).collect();
            Some(RecordBatch::seal(root.aead(), root.id_key(), place, &rows)?)
        };
        let (owner, writer) = (self.credential.owner, self.credential.writer());
        let wrap = wrap(spec, &self.credential.pair, owner, writer, sealed.id, master.expose())?;
        Ok(WrittenSegment { sealed, records, wrap })
    }
}
