//! What the server's index knows of a segment, and its rows wherever they are: in memory or in storage.

use super::segment::{Segment, SegmentHead};
use crate::error::Result;
use crate::protect::filter::FilterTags;
use ciphervec_arith::AlignedBytes;
use ciphervec_arith::parallel::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of segments that are read at once.
const AHEAD: usize = 16 << 20;

/// Parses the stored bytes of a segment: the index that it belongs to.
pub trait SegmentParser: Sync {
    /// A segment, without adding it, from bytes that the store has checked block by block: their checksum is not computed a
    /// second time.
    ///
    /// # Errors
    /// Another index, lengths or numbers that do not fit.
    fn parse_checked(&self, bytes: AlignedBytes) -> Result<Segment>;
}

/// Rows that are not kept in memory, or only while there is room.
pub trait SegmentSource: Send + Sync {
    /// The segment, checked; `index` parses what was read.
    ///
    /// # Errors
    /// Bytes that cannot be read, or are not what they were.
    fn segment(&self, index: &dyn SegmentParser) -> Result<Arc<Segment>>;

    /// Brings the rows into memory, if there is room. What cannot be read is left to whoever needs it.
    fn load(&self, index: &dyn SegmentParser);

    /// Whether the rows are in memory now.
    fn is_resident(&self) -> bool;
}

/// A segment as the index knows it, wherever its rows are.
pub struct SegmentEntry {
    pub head: SegmentHead,
    /// Bytes of it, framed.
    pub len: usize,
    pub tags: FilterTags,
    pub residency: Residency,
}

/// Where rows are.
pub enum Residency {
    Memory(Arc<Segment>),
    Stored(Arc<dyn SegmentSource>),
}

impl SegmentEntry {
    /// The rows, in memory for as long as what comes back is held.
    fn segment(&self, parser: &dyn SegmentParser) -> Result<Arc<Segment>> {
        match &self.residency {
            Residency::Memory(segment) => Ok(Arc::clone(segment)),
            Residency::Stored(source) => source.segment(parser),
        }
    }

    /// Whether the rows are in memory now.
    pub fn is_resident(&self) -> bool {
        match &self.residency {
            Residency::Memory(_) => true,
            Residency::Stored(source) => source.is_resident(),
        }
    }
}

/// A segment that a query is about, with its matching rows if the query is filtered.
pub(super) type Chosen<'a> = (&'a SegmentEntry, Option<Vec<bool>>);

/// Segments of an index, as a form gets at their rows.
pub trait SegmentReader: Sync {
    /// All of them, in the order they were added.
    fn entries(&self) -> &[Arc<SegmentEntry>];

    /// What parses their rows.
    fn parser(&self) -> &dyn SegmentParser;
}

/// The rows of these segments, in their order. Those that are not in memory are read some at a time, on all threads of the
/// current pool, shortly before they are needed.
pub(super) fn rows_of<'a>(
    parser: &'a dyn SegmentParser,
    entries: impl Iterator<Item = &'a SegmentEntry>,
) -> impl Iterator<Item = Result<Arc<Segment>>> {
    let mut rest = entries.peekable();
    let mut ready = VecDeque::new();
    std::iter::from_fn(move || {
        if ready.is_empty() {
            let (mut group, mut bytes) = (Vec::new(), 0);
            while let Some(next) = rest.next_if(|next| bytes == 0 || bytes + next.len <= AHEAD) {
                bytes += next.len;
                group.push(next);
            }
            ready = if group.iter().all(|entry| entry.is_resident()) {
                group.iter().map(|entry| entry.segment(parser)).collect()
            } else {
                group.par_iter().map(|entry| entry.segment(parser)).collect()
            };
        }
        ready.pop_front()
    })
}
