//! What an index knows of a segment enters, its rows leave, wherever they lie. Server only.

use super::index::ServerIndex;
use super::segment::{Segment, SegmentHead};
use crate::error::Result;
use crate::protect::filter::FilterTags;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of segments that are read at once.
const AHEAD: usize = 16 << 20;

/// Rows that are not kept in memory, or only while there is room.
pub trait SegmentSource: Send + Sync {
    /// The segment, checked; `index` parses what was read.
    ///
    /// # Errors
    /// Bytes that cannot be read, or are not what they were.
    fn segment(&self, index: &ServerIndex) -> Result<Arc<Segment>>;

    /// Brings the rows into memory, if there is room. What cannot be read is left to whoever needs it.
    fn load(&self, index: &ServerIndex);

    /// Whether the rows are in memory now.
    fn is_resident(&self) -> bool;
}

/// A segment as the index knows it, wherever its rows are.
pub(super) struct Held {
    pub head: SegmentHead,
    /// Bytes of it, framed.
    pub len: usize,
    pub tags: FilterTags,
    pub rows: Rows,
}

pub(super) enum Rows {
    Resident(Arc<Segment>),
    Stored(Arc<dyn SegmentSource>),
}

impl Held {
    /// The rows, in memory for as long as what comes back is held.
    fn segment(&self, index: &ServerIndex) -> Result<Arc<Segment>> {
        match &self.rows {
            Rows::Resident(segment) => Ok(Arc::clone(segment)),
            Rows::Stored(source) => source.segment(index),
        }
    }

    /// Whether the rows are in memory now.
    pub fn is_resident(&self) -> bool {
        match &self.rows {
            Rows::Resident(_) => true,
            Rows::Stored(source) => source.is_resident(),
        }
    }
}

/// A segment that a query is about, with its matching rows if the query is filtered.
pub(super) type Chosen<'a> = (&'a Held, Option<Vec<bool>>);

impl ServerIndex {
    /// The rows of these segments, in their order. Those that are not in memory are read some at a time, on all threads of the
    /// current pool, shortly before they are needed.
    pub(super) fn rows_of<'a>(
        &'a self,
        held: impl Iterator<Item = &'a Held>,
    ) -> impl Iterator<Item = Result<Arc<Segment>>> {
        let mut rest = held.peekable();
        let mut ready = VecDeque::new();
        std::iter::from_fn(move || {
            if ready.is_empty() {
                let (mut group, mut bytes) = (Vec::new(), 0);
                while let Some(next) = rest.next_if(|next| bytes == 0 || bytes + next.len <= AHEAD)
                {
                    bytes += next.len;
                    group.push(next);
                }
                ready = if group.iter().all(|held| held.is_resident()) {
                    group.iter().map(|held| held.segment(self)).collect()
                } else {
                    group.par_iter().map(|held| held.segment(self)).collect()
                };
            }
            ready.pop_front()
        })
    }
}
