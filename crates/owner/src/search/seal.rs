//! Seals the rows and ids of one segment: framed ciphertexts and a sealed sidecar. Owner and writer.

use super::form::{Expected, RowEncryptor};
use super::quantize::check;
use super::root_key::SegmentRootKey;
use super::segment::MAX_ROWS;
use super::{SegmentHead, centre};
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::protect::id::Id;
use crate::protect::sidecar::{Sidecar, associated_data};
use ciphervec_arith::AlignedBytes;
use ciphervec_he_secret::lattice::SegmentId;

/// What one sealing call made: the server gets `segment`, and `sidecar` to keep for the owner.
pub struct SealedSegment {
    /// The segment's name, which is its nonce.
    pub id: SegmentId,
    /// Vectors sealed.
    pub rows: u32,
    /// The level it is packed for.
    pub level: u8,
    /// The framed segment.
    pub segment: AlignedBytes,
    /// Ids and norms, encrypted.
    pub sidecar: Vec<u8>,
}

/// Seals rows, less the centre that they lie `around`, under `root`, under a nonce that is drawn now and never again.
///
/// # Errors
/// Rows that fail the checks, another number of ids than rows, an id given twice, no rows, or too many; no randomness.
pub(super) fn seal(
    spec: &IndexSpec,
    root: &SegmentRootKey,
    encryptor: &dyn RowEncryptor,
    rows: &[f32],
    ids: &[Id],
    expected: &Expected,
    around: &[f32],
) -> Result<SealedSegment> {
    let moved = centre::less(spec, rows, around)?;
    let checked = check(spec, &moved)?;
    if checked.len() != ids.len() {
        return Err(Error::IdCount { rows: checked.len(), ids: ids.len() });
    }
    if ids.is_empty() || ids.len() > MAX_ROWS {
        return Err(Error::Range {
            what: "rows to seal",
            expected: format!("1 to {MAX_ROWS}"),
            actual: ids.len().to_string(),
        });
    }
    ids.iter().try_for_each(Id::validate)?;
    let mut seen = std::collections::HashSet::with_capacity(ids.len());
    if let Some(repeated) = ids.iter().find(|id| !seen.insert(*id)) {
        return Err(Error::DuplicateId(repeated.clone()));
    }
    let encrypted = encryptor.encrypt_rows(root, &checked, expected)?;
    let (id, level, rows) = (encrypted.id, encrypted.level, ids.len() as u32);
    let head = SegmentHead { id, rows, kept: rows, level, key: encrypted.key };
    let norms = match spec.metric().needs_norms() {
        true => checked.norms.iter().map(|&norm| norm as f32).collect(),
        false => Vec::new(),
    };
    let witness = encrypted.witness;
    let (ids, centre) = (ids.to_vec(), around.to_vec());
    let sidecar = Sidecar { ids, norms, centre, level, rows, witness };
    let sidecar = sidecar.seal(root.aead(), &associated_data(&spec.binding(), &id.0))?;
    let segment = head.frame(spec, encrypted.words);
    Ok(SealedSegment { id, rows, level, segment, sidecar })
}
