//! Checks a change, and makes the form of it that is searched.
//!
//! All that can be checked without a key is checked before a byte is written, so that what is
//! acknowledged can be searched.

use super::blob_names::{EVALUATION, RECORDS, ROWS, SIDECAR, TAGS, WRAP};
use super::description::Description;
use super::error::DatabaseError;
use ciphervec::protect::filter::FilterTags;
use ciphervec::search::{Segment, ServerIndex, WrappedKey, is_session};
use ciphervec::store::{Change, NewSegment};
use ciphervec_arith::AlignedBytes;
use rayon::prelude::*;
use std::sync::Arc;

const SIDECAR_MAGIC: &[u8] = b"CVSIDECR";
const RECORDS_MAGIC: &[u8] = b"CVRECORD";

/// A change whose parts fit the collection.
pub(crate) struct Checked {
    /// The description that it sets.
    pub description: Option<Description>,
    /// Evaluation keys that it sets.
    pub evaluation: Option<Vec<u8>>,
    /// The segments that it adds, as they are searched.
    pub segments: Vec<(Arc<Segment>, FilterTags)>,
}

fn invalid(error: ciphervec::Error) -> DatabaseError {
    DatabaseError::Invalid(error.to_string())
}

/// Checks a change against the collection that it is for.
pub(crate) fn change(
    index: &ServerIndex,
    present: &Description,
    change: &Change,
) -> Result<Checked, DatabaseError> {
    let description =
        change.set_meta.as_deref().map(|meta| described(meta, present)).transpose()?;
    if change.drop_attachments.iter().any(|name| name == EVALUATION) && present.needs_evaluation() {
        return Err(DatabaseError::Invalid(format!(
            "without the attachment {EVALUATION:?} no query can be answered; replace it instead"
        )));
    }
    let mut index = index.clone();
    index.remove_all(change.remove.iter().map(|id| ciphervec::SegmentId(*id)));
    let replaced = change.attachments.iter().find(|(name, _)| name == EVALUATION);
    let replaced = replaced.filter(|_| present.needs_evaluation());
    if let Some((_, bytes)) = replaced {
        // Refuses another key than that of the segments that stay.
        evaluation(&mut index, bytes)?;
    }
    let segments = change
        .add
        .par_iter()
        .map(|segment| new_segment(&index, segment))
        .collect::<Result<Vec<_>, _>>()?;
    let evaluation = replaced.map(|(_, bytes)| bytes.clone());
    Ok(Checked { description, evaluation, segments })
}

/// Takes in the evaluation keys of a collection: those of sessions are no part of it.
pub(crate) fn evaluation(index: &mut ServerIndex, bytes: &[u8]) -> Result<(), DatabaseError> {
    let epoch = index.set_evaluation_keys(bytes).map_err(invalid)?;
    if is_session(epoch) {
        return Err(DatabaseError::Invalid(format!(
            "the evaluation keys are those of session {epoch}; a collection's own have a number below 2^31"
        )));
    }
    Ok(())
}

/// A new description may differ from the old one in its epoch, its sealed settings, and the owner's
/// key: which one that is matters to nobody but the owner, who rotates it.
fn described(meta: &[u8], present: &Description) -> Result<Description, DatabaseError> {
    let described = Description::received(meta).map_err(DatabaseError::Invalid)?;
    if described.spec != present.spec {
        return Err(DatabaseError::Invalid(
            "the spec of a collection is fixed when it is made; make another collection".into(),
        ));
    }
    Ok(described)
}

fn new_segment(
    index: &ServerIndex,
    segment: &NewSegment,
) -> Result<(Arc<Segment>, FilterTags), DatabaseError> {
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
    if let Some(wrap) = part(WRAP) {
        let wrap =
            WrappedKey::read(index.spec(), wrap).map_err(|error| refuse(error.to_string()))?;
        if wrap.segment != named {
            return Err(refuse(format!("its wrapped key is that of segment {}", wrap.segment)));
        }
    }
    let parsed =
        index.parse(AlignedBytes::from_slice(rows)).map_err(|error| refuse(error.to_string()))?;
    let head = parsed.head();
    if head.id != named {
        return Err(refuse(format!("its rows are those of segment {}", head.id)));
    }
    if head.kept != head.rows {
        return Err(refuse(format!(
            "{} of its {} rows came; a new segment has all",
            head.kept, head.rows
        )));
    }
    if head.rows != segment.rows {
        return Err(refuse(format!("{} rows announced, {} came", segment.rows, head.rows)));
    }
    if tags.rows() != 0 && tags.rows() != head.rows {
        return Err(refuse(format!("filter tags of {} rows, {} came", head.rows, tags.rows())));
    }
    if part(WRAP).is_some() && !index.may_pack(head).map_err(invalid)? {
        return Err(refuse(format!(
            "{} rows are packed for level {} of the query tree, deeper than they need: every query would lose precision \
             by it; seal smaller batches, or take a current release",
            head.rows, head.level
        )));
    }
    Ok((Arc::new(parsed), tags))
}
