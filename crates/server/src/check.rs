//! A change enters; it leaves in the form that is searched, or refused. Server side.
//!
//! All that can be checked without a key is checked before a byte is written, so that what is acknowledged can be searched.

use crate::collection::{EVALUATION, Held, ROWS, TAGS};
use crate::description::Description;
use crate::error::DatabaseError;
use ciphervec::filter::FilterTags;
use ciphervec::search::ServerIndex;
use ciphervec::store::{Change, NewSegment};
use ciphervec_arith::AlignedBytes;

const SIDECAR: &str = "sidecar";
const RECORDS: &str = "records";
const SIDECAR_MAGIC: &[u8] = b"CVSIDECR";
const RECORDS_MAGIC: &[u8] = b"CVRECORD";

/// A change whose parts fit the collection.
pub(crate) struct Checked {
    /// The description that it sets.
    pub description: Option<Description>,
    evaluation: Option<(Vec<u8>, u32)>,
    segments: Vec<(AlignedBytes, FilterTags)>,
}

impl Checked {
    /// Brings an index to the state after the change; removals have been made.
    pub fn apply(&self, index: &mut ServerIndex) -> Result<(), DatabaseError> {
        if let Some((bytes, over)) = &self.evaluation {
            let epoch = index.set_evaluation_keys(bytes).map_err(invalid)?;
            if epoch != *over {
                index.forget_epoch(*over);
            }
        }
        for (rows, tags) in &self.segments {
            index.add_tagged(rows.clone(), tags.clone()).map_err(invalid)?;
        }
        Ok(())
    }
}

fn invalid(error: ciphervec::Error) -> DatabaseError {
    DatabaseError::Invalid(error.to_string())
}

/// Checks a change against the collection that it is for.
pub(crate) fn change(held: &Held, change: &Change) -> Result<Checked, DatabaseError> {
    let present = &held.description;
    let description =
        change.set_meta.as_deref().map(|meta| described(meta, present)).transpose()?;
    if change.drop_attachments.iter().any(|name| name == EVALUATION) && present.needs_evaluation() {
        return Err(DatabaseError::Invalid(format!(
            "without the attachment {EVALUATION:?} no query can be answered; replace it instead"
        )));
    }
    let mut index = ServerIndex::new(present.spec.clone()).map_err(invalid)?;
    let replaced = change.attachments.iter().find(|(name, _)| name == EVALUATION);
    let replaced = replaced.filter(|_| present.needs_evaluation());
    if let Some((_, bytes)) = replaced {
        // In an index of its own first: the key that segments are held under may not change, unless none of them stays.
        let mut index = held.index.clone();
        for id in &change.remove {
            index.remove(ciphervec::SegmentId(*id));
        }
        index.set_evaluation_keys(bytes).map_err(invalid)?;
    }
    if present.spec.scheme().is_additive() {
        match replaced {
            Some((_, bytes)) => index.set_evaluation_keys(bytes).map_err(invalid)?,
            None => {
                index.set_evaluation_keys(&held.view.attachment(EVALUATION)?).map_err(invalid)?
            }
        };
    }
    let segments = change
        .add
        .iter()
        .map(|segment| new_segment(&mut index, segment))
        .collect::<Result<Vec<_>, _>>()?;
    let evaluation = replaced.map(|(_, bytes)| (bytes.clone(), present.epoch));
    Ok(Checked { description, evaluation, segments })
}

/// A new description may differ from the old one in its epoch, its sealed settings, and the owner's key: which one that is
/// matters to nobody but the owner, who rotates it.
fn described(meta: &[u8], present: &Description) -> Result<Description, DatabaseError> {
    let described = Description::from_bytes(meta).map_err(DatabaseError::Invalid)?;
    if described.spec != present.spec {
        return Err(DatabaseError::Invalid(
            "the spec of a collection is fixed when it is made; make another collection".into(),
        ));
    }
    Ok(described)
}

fn new_segment(
    index: &mut ServerIndex,
    segment: &NewSegment,
) -> Result<(AlignedBytes, FilterTags), DatabaseError> {
    let named = ciphervec::SegmentId(segment.id);
    let refuse = |detail: String| DatabaseError::Invalid(format!("segment {named}: {detail}"));
    let part = |name: &str| {
        segment.blobs.iter().find(|(found, _)| found == name).map(|(_, bytes)| bytes.as_slice())
    };
    let rows = part(ROWS).ok_or_else(|| refuse(format!("no blob {ROWS:?}")))?;
    let tags = part(TAGS).map(FilterTags::from_bytes).transpose();
    let tags = tags.map_err(|error| refuse(error.to_string()))?.unwrap_or_default();
    for (name, magic) in [(SIDECAR, SIDECAR_MAGIC), (RECORDS, RECORDS_MAGIC)] {
        if part(name).is_some_and(|bytes| !bytes.starts_with(magic)) {
            let magic = String::from_utf8_lossy(magic);
            return Err(refuse(format!("the blob {name:?} does not start with {magic}")));
        }
    }
    let rows = AlignedBytes::from_slice(rows);
    let id =
        index.add_tagged(rows.clone(), tags.clone()).map_err(|error| refuse(error.to_string()))?;
    if id.0 != segment.id {
        return Err(refuse(format!("its rows are those of segment {id}")));
    }
    let held = index.segments().last().map_or(0, |held| held.head().rows);
    if held != segment.rows {
        return Err(refuse(format!("{} rows announced, {held} came", segment.rows)));
    }
    Ok((rows, tags))
}
