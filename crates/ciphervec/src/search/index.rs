//! The server's index: segments, filter tags and evaluation keys that it answers queries from. It cannot name a secret key.

use super::entry::{Residency, SegmentEntry, SegmentParser, SegmentReader, SegmentSource};
use super::form::{self, ServerHalf, SessionKeys};
use super::segment::{Segment, SegmentHead};
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::protect::filter::FilterTags;
use ciphervec_arith::AlignedBytes;
use ciphervec_he::lattice::SegmentId;
use std::collections::HashSet;
use std::sync::Arc;

/// One index as the server holds it: segments, filter tags and evaluation keys. A clone shares all of them, so that the next
/// state is made beside the one that queries are still being answered from.
#[derive(Clone)]
pub struct ServerIndex {
    spec: IndexSpec,
    form: Arc<dyn ServerHalf>,
    segments: Vec<Arc<SegmentEntry>>,
    ids: HashSet<[u8; 16]>,
}

impl ServerIndex {
    /// An empty index.
    ///
    /// # Errors
    /// If the parameters were refused.
    pub fn new(spec: IndexSpec) -> Result<Self> {
        let form = form::served(&spec).server(&spec)?;
        Ok(ServerIndex { spec, form, segments: Vec::new(), ids: HashSet::new() })
    }

    /// The description.
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    pub(super) fn form(&self) -> &dyn ServerHalf {
        self.form.as_ref()
    }

    /// Installs evaluation keys; those of other epochs stay until [`Self::forget_epoch`]. Under an additively homomorphic
    /// scheme they are the public key, which comes before any segment and has no epoch.
    ///
    /// # Errors
    /// Damaged bytes, another index, another key than that of the segments held, or a mode that needs no keys.
    pub fn set_evaluation_keys(&mut self, bytes: &[u8]) -> Result<u32> {
        let held = self.segments.first().map(|entry| entry.head.key);
        let (form, epoch) = self.form.with_keys(bytes, held)?;
        self.form = form;
        Ok(epoch)
    }

    /// Drops the keys of an epoch that is over.
    pub fn forget_epoch(&mut self, epoch: u32) -> bool {
        let Some(form) = self.form.without_epoch(epoch) else { return false };
        self.form = form;
        true
    }

    /// Reads the evaluation keys of a session, which a client of the owner's has begun: of the same owner and under the same
    /// masks as those held. They are not installed; see [`Self::evaluate_with`].
    ///
    /// # Errors
    /// As [`Self::set_evaluation_keys`]; keys that are no session's.
    pub fn session_keys(&self, bytes: &[u8]) -> Result<SessionKeys> {
        self.form.session_keys(bytes).unwrap_or_else(|| Err(form::no_keys(&self.spec)))
    }

    /// Adds a segment without filter tags.
    ///
    /// # Errors
    /// As [`Self::add_tagged`].
    pub fn add(&mut self, bytes: AlignedBytes) -> Result<SegmentId> {
        self.add_tagged(bytes, FilterTags::new())
    }

    /// Adds a segment and the filter tags of its rows (none, or one list a row).
    ///
    /// # Errors
    /// Damaged bytes, another index, a segment that is there already, tags for another number of rows.
    pub fn add_tagged(&mut self, bytes: AlignedBytes, tags: FilterTags) -> Result<SegmentId> {
        let segment = self.parse(bytes)?;
        let (head, len) = (*segment.head(), segment.byte_len());
        let residency = Residency::Memory(Arc::new(segment));
        self.hold(SegmentEntry { head, len, tags, residency })
    }

    /// Adds a segment whose rows come from `source` whenever they are needed; `len` is the length of its framed bytes.
    ///
    /// # Errors
    /// A segment that is there already, tags for another number of rows.
    pub fn add_stored(
        &mut self,
        head: SegmentHead,
        len: usize,
        tags: FilterTags,
        source: Arc<dyn SegmentSource>,
    ) -> Result<SegmentId> {
        self.hold(SegmentEntry { head, len, tags, residency: Residency::Stored(source) })
    }

    fn hold(&mut self, entry: SegmentEntry) -> Result<SegmentId> {
        let head = entry.head;
        if self.ids.contains(&head.id.0) {
            return Err(Error::DuplicateSegment(head.id.to_string()));
        }
        if entry.tags.rows() != 0 && entry.tags.rows() != head.rows {
            return Err(Error::Range {
                what: "rows with filter tags",
                expected: format!("0 or {}", head.rows),
                actual: entry.tags.rows().to_string(),
            });
        }
        self.ids.insert(head.id.0);
        self.segments.push(Arc::new(entry));
        Ok(head.id)
    }

    /// A segment of this index, without adding it.
    ///
    /// # Errors
    /// Damaged bytes, another index.
    pub fn parse(&self, bytes: AlignedBytes) -> Result<Segment> {
        let head = SegmentHead::read(&self.spec, &bytes)?;
        self.form.read_rows(head, bytes)
    }

    /// The same from bytes that the store has checked block by block: their checksum is not computed a second time.
    ///
    /// # Errors
    /// Another index, lengths or numbers that do not fit.
    pub fn parse_checked(&self, bytes: AlignedBytes) -> Result<Segment> {
        let head = SegmentHead::read_start(&self.spec, &bytes, bytes.len())?;
        self.form.read_rows(head, bytes)
    }

    /// Whether a segment that somebody else packed may be taken in beside the rows that are here: a level of the query tree
    /// that its rows do not need would cost every query some of its precision.
    ///
    /// # Errors
    /// A description that has no layout.
    pub fn may_pack(&self, head: &SegmentHead) -> Result<bool> {
        let rows = head.rows as usize;
        form::of(&self.spec).may_pack(&self.spec, rows, head.level, self.rows() + rows)
    }

    /// Drops a segment; whether it was there.
    pub fn remove(&mut self, id: SegmentId) -> bool {
        self.ids.remove(&id.0);
        let position = self.segments.iter().position(|entry| entry.head.id == id);
        position.map(|index| self.segments.remove(index)).is_some()
    }

    /// Removes all of these in one pass.
    pub fn remove_all(&mut self, ids: impl IntoIterator<Item = SegmentId>) {
        let gone: HashSet<[u8; 16]> =
            ids.into_iter().map(|id| id.0).filter(|id| self.ids.remove(id)).collect();
        if !gone.is_empty() {
            self.segments.retain(|entry| !gone.contains(&entry.head.id.0));
        }
    }

    /// The segments that are in memory whatever happens, in the order they were added.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter_map(|entry| match &entry.residency {
            Residency::Memory(segment) => Some(segment.as_ref()),
            Residency::Stored(_) => None,
        })
    }

    /// What the segments say of themselves, in the order they were added.
    pub fn heads(&self) -> impl Iterator<Item = &SegmentHead> {
        self.segments.iter().map(|entry| &entry.head)
    }

    /// Vectors held.
    pub fn rows(&self) -> usize {
        self.heads().map(|head| head.rows as usize).sum()
    }

    /// Bytes of the segments held, in memory or not.
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(|entry| entry.len).sum()
    }

    /// Bytes of the segments that are in memory now.
    pub fn resident(&self) -> u64 {
        let resident = self.segments.iter().filter(|entry| entry.is_resident());
        resident.map(|entry| entry.len as u64).sum()
    }

    /// The segments whose rows are not in memory now.
    pub fn missing(&self) -> impl Iterator<Item = &dyn SegmentSource> {
        self.segments.iter().filter_map(|entry| match &entry.residency {
            Residency::Stored(source) if !source.is_resident() => Some(&**source),
            _ => None,
        })
    }
}

impl SegmentParser for ServerIndex {
    fn parse_checked(&self, bytes: AlignedBytes) -> Result<Segment> {
        ServerIndex::parse_checked(self, bytes)
    }
}

impl SegmentReader for ServerIndex {
    fn entries(&self) -> &[Arc<SegmentEntry>] {
        &self.segments
    }

    fn parser(&self) -> &dyn SegmentParser {
        self
    }
}
