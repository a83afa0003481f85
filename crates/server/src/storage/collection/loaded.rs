//! Loaded state: a committed state enters; the index that answers queries leaves. Server side.
//!
//! Heads and tags are in memory, rows when they are needed.

use crate::storage::blob_names::{EVALUATION, ROWS, TAGS};
use crate::storage::cache::{Cache, CachedSegment};
use crate::storage::check::Checked;
use crate::storage::description::Description;
use crate::storage::error::DatabaseError;
use ciphervec::protect::filter::FilterTags;
use ciphervec::search::{SegmentHead, ServerIndex};
use ciphervec::store::{self, SegmentId};
use rayon::prelude::*;
use std::sync::Arc;

/// The state that queries are answered from.
pub(crate) struct LoadedState {
    pub view: store::View,
    pub description: Description,
    pub index: ServerIndex,
}

impl LoadedState {
    /// Reads heads and filter tags of a state; rows are read when they are needed. Every block read
    /// is checked.
    pub fn load(view: store::View, cache: &Arc<Cache>) -> Result<Self, DatabaseError> {
        let description =
            Description::from_bytes(&view.manifest().meta).map_err(DatabaseError::Corrupt)?;
        let mut index = ServerIndex::new(description.spec.clone()).map_err(damaged)?;
        if description.needs_evaluation() {
            index.set_evaluation_keys(&view.attachment(EVALUATION)?).map_err(damaged)?;
        }
        let known = view.manifest().segments.par_iter().map(|entry| {
            let tags = match entry.blob(TAGS) {
                Some(_) => FilterTags::from_bytes(&view.read(&entry.id, TAGS)?)
                    .map_err(|error| DatabaseError::Corrupt(error.to_string()))?,
                None => FilterTags::new(),
            };
            let named = ciphervec::SegmentId(entry.id);
            let blob = stored(&view, &entry.id)?;
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
        Ok(Self { view, description, index })
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
        for id in removed {
            index.remove(ciphervec::SegmentId(*id));
        }
        if let Some(bytes) = &checked.evaluation {
            let epoch = index.set_evaluation_keys(bytes).map_err(damaged)?;
            let over = self.description.epoch;
            if epoch != over {
                index.forget_epoch(over);
            }
        }
        for (segment, tags) in checked.segments {
            let head = *segment.head();
            let blob = stored(&view, &head.id.0)?;
            let source = CachedSegment::new(cache, blob).with(&segment);
            index.add_stored(head, segment.byte_len(), tags, Arc::new(source)).map_err(damaged)?;
        }
        let description = checked.description.unwrap_or_else(|| self.description.clone());
        Ok(Self { view, description, index })
    }
}

fn damaged(error: ciphervec::Error) -> DatabaseError {
    match error {
        ciphervec::Error::Store(error) => error.into(),
        other => DatabaseError::Corrupt(other.to_string()),
    }
}

/// The rows of a segment, to be read when they are needed.
fn stored(view: &store::View, id: &SegmentId) -> Result<store::StoredBlob, DatabaseError> {
    let rows = view.manifest().segment(id).and_then(|entry| entry.blob(ROWS));
    rows.map(|blob| view.stored(blob)).ok_or_else(|| {
        DatabaseError::Corrupt(format!(
            "segment {} has no blob {ROWS:?}",
            ciphervec::SegmentId(*id)
        ))
    })
}
