//! A committed state, loaded as the index that answers queries.
//!
//! Heads and tags are in memory, rows when they are needed.

use crate::storage::blob_names::{EVALUATION, ROWS, TAGS};
use crate::storage::cache::{Cache, CachedSegment};
use crate::storage::check::Checked;
use crate::storage::description::Description;
use crate::storage::error::DatabaseError;
use ciphervec::protect::filter::FilterTags;
use ciphervec::search::{SegmentHead, ServerIndex};
use ciphervec::store::{self, SegmentEntry, SegmentId};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// The state that queries are answered from.
pub(crate) struct LoadedState {
    pub view: store::View,
    pub description: Description,
    pub index: ServerIndex,
    /// BLAKE3 of the evaluation keys that it answers with; none in a form that needs none.
    pub evaluation: Option<[u8; 32]>,
}

impl LoadedState {
    /// Reads heads and filter tags of a state; rows are read when they are needed. Every block read
    /// is checked.
    pub fn load(view: store::View, cache: &Arc<Cache>) -> Result<Self, DatabaseError> {
        let description =
            Description::from_bytes(&view.manifest().meta).map_err(DatabaseError::Corrupt)?;
        let mut index = ServerIndex::new(description.spec.clone()).map_err(damaged)?;
        let mut evaluation = None;
        if description.needs_evaluation() {
            let keys = view.attachment(EVALUATION)?;
            index.set_evaluation_keys(&keys).map_err(damaged)?;
            evaluation = Some(blake3::hash(&keys).into());
        }
        let known = view.manifest().segments.par_iter().map(|entry| {
            let tags = match entry.blob(TAGS) {
                Some(blob) => FilterTags::from_bytes(&view.stored(blob).read()?)
                    .map_err(|error| DatabaseError::Corrupt(error.to_string()))?,
                None => FilterTags::new(),
            };
            let named = ciphervec::SegmentId(entry.id);
            let blob = stored(&view, entry)?;
            let len = blob.length() as usize;
            let start = blob.read_start(SegmentHead::LEN)?;
            let head = SegmentHead::read_start(&description.spec, &start, len).map_err(damaged)?;
            if (head.id, head.rows) != (named, entry.rows) {
                return Err(DatabaseError::Corrupt(format!(
                    "segment {named} of {} rows holds {} rows of segment {}",
                    entry.rows, head.rows, head.id
                )));
            }
            Ok((head, len, tags, CachedSegment::new(cache, blob)))
        });
        let known: Vec<_> = known.collect::<Result<_, DatabaseError>>()?;
        for (head, len, tags, source) in known {
            index.add_stored(head, len, tags, Arc::new(source)).map_err(damaged)?;
        }
        Ok(Self { view, description, index, evaluation })
    }

    /// The state after a commit: what is known already is shared with the one before.
    pub fn next(
        &self,
        view: store::View,
        removed: &[SegmentId],
        checked: Checked,
        cache: &Arc<Cache>,
    ) -> Result<Self, DatabaseError> {
        let mut index = self.index.clone();
        index.remove_all(removed.iter().map(|id| ciphervec::SegmentId(*id)));
        let mut evaluation = self.evaluation;
        if let Some(bytes) = &checked.evaluation {
            evaluation = Some(blake3::hash(bytes).into());
            let epoch = index.set_evaluation_keys(bytes).map_err(damaged)?;
            let over = self.description.epoch;
            if epoch != over {
                index.forget_epoch(over);
            }
        }
        let entries: HashMap<SegmentId, &SegmentEntry> = if checked.segments.is_empty() {
            HashMap::new()
        } else {
            view.manifest().segments.iter().map(|entry| (entry.id, entry)).collect()
        };
        for (segment, tags) in checked.segments {
            let head = *segment.head();
            let entry = entries.get(&head.id.0).ok_or_else(|| without_rows(&head.id.0))?;
            let blob = stored(&view, entry)?;
            let source = CachedSegment::new(cache, blob).with(&segment);
            index.add_stored(head, segment.byte_len(), tags, Arc::new(source)).map_err(damaged)?;
        }
        let description = checked.description.unwrap_or_else(|| self.description.clone());
        drop(entries);
        Ok(Self { view, description, index, evaluation })
    }
}

fn damaged(error: ciphervec::Error) -> DatabaseError {
    match error {
        ciphervec::Error::Store(error) => error.into(),
        other => DatabaseError::Corrupt(other.to_string()),
    }
}

/// The rows of a segment, to be read when they are needed.
fn stored(view: &store::View, entry: &SegmentEntry) -> Result<store::StoredBlob, DatabaseError> {
    let rows = entry.blob(ROWS).map(|blob| view.stored(blob));
    rows.ok_or_else(|| without_rows(&entry.id))
}

fn without_rows(id: &SegmentId) -> DatabaseError {
    DatabaseError::Corrupt(format!("segment {} has no blob {ROWS:?}", ciphervec::SegmentId(*id)))
}
