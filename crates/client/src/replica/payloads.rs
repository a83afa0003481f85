//! What belongs to a row beside its vector, in blobs of its segment: metadata and document, filter tags, the vector as it was put in.

use std::collections::HashMap;
use std::sync::Arc;

use ciphervec_owner::protect::aead::EnvelopeError;
use ciphervec_owner::protect::filter::FilterTags;
use ciphervec_owner::protect::records::{Place, RecordBatch, RecordOpener, seal_records};
use ciphervec_owner::search::{Origin, Owner, SegmentDirectory, SegmentRootKey};
use ciphervec_owner::{Error as SchemeError, Id, SegmentId};
use indexmap::IndexMap;

use crate::change::{ORIGINALS, RECORDS, StoredSegment, TAGS, TERMS};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::records::original::{Kept, original, read_kept};
use crate::records::record;
use crate::records::sparse::Kind;
use crate::records::terms::{Terms, TermsBuilder};
use crate::records::{Bound, Filter, Table, TableBuilder};
use crate::replica::Replica;
use crate::replica::batch::Batch;
use crate::replica::fetch::Fetch;
use crate::replica::padding::{BUNDLE, unpack, unpadded};
use crate::threads::heavy;

/// The id that the words of a segment are sealed to, as its one record.
const WORDS: &str = "ciphervec words of a segment";

/// Rows of one segment, by the names that they have.
pub type Rows<'a> = [(u32, &'a Id)];

impl Replica {
    /// The bytes of what is stored beside these rows of a segment; none where nothing is.
    pub async fn records(
        &mut self,
        host: &dyn Host,
        segment: &StoredSegment,
        rows: &Rows<'_>,
    ) -> Result<Vec<Arc<[u8]>>> {
        if !segment.may_have(RECORDS) {
            return Ok(rows.iter().map(|_| Arc::from([])).collect());
        }
        let known = self.payloads.opened.get(&segment.id);
        let left: Vec<_> = rows
            .iter()
            .filter(|(row, _)| !known.is_some_and(|known| known.contains_key(row)))
            .copied()
            .collect();
        let mut found: HashMap<u32, Arc<[u8]>> = known
            .map(|known| {
                rows.iter()
                    .filter_map(|(row, _)| Some((*row, Arc::clone(known.get(row)?))))
                    .collect()
            })
            .unwrap_or_default();
        // Of no rows too: that none is left of a cluster must not show.
        if !left.is_empty() || rows.is_empty() {
            let opened = self.open_blob(host, segment, RECORDS, &left).await?;
            for ((row, _), record) in left.iter().zip(opened) {
                self.payloads.keep(segment.id, *row, &record);
                found.insert(*row, record);
            }
        }
        Ok(rows
            .iter()
            .map(|(row, _)| found.get(row).cloned().unwrap_or_else(|| Arc::from([])))
            .collect())
    }

    /// The vectors of these rows as they were put in; none where they were not kept. None of a writer's: that they are those searched is
    /// the writer's word. Of rows with many vectors they are always kept.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where they were not, and rows have many.
    pub async fn originals(
        &mut self,
        host: &dyn Host,
        segment: &StoredSegment,
        rows: &Rows<'_>,
    ) -> Result<Vec<Option<Kept>>> {
        let multi = self.description.multi.clone();
        let dimension = self.description.spec.dimension();
        let mut kept = Vec::with_capacity(rows.len());
        for one in self.kept_bytes(host, segment, rows).await? {
            kept.push(heavy(|| read_kept(&one, dimension, multi.as_deref()))?);
        }
        if multi.is_some() && kept.iter().any(Option::is_none) {
            return Error::corrupt(format!("{} has rows without their vectors", self.name()));
        }
        Ok(kept)
    }

    /// The bytes that these are read from; none where nothing was kept.
    pub async fn kept_bytes(
        &mut self,
        host: &dyn Host,
        segment: &StoredSegment,
        rows: &Rows<'_>,
    ) -> Result<Vec<Arc<[u8]>>> {
        if !segment.has(ORIGINALS) || self.writer(segment.id).is_some() {
            return Ok(rows.iter().map(|_| Arc::from([])).collect());
        }
        let opened = self.open_blob(host, segment, ORIGINALS, rows).await?;
        self.payloads.records.remove(&segment.id);
        Ok(opened)
    }

    /// These rows of a blob of sealed records, of which all have to open, whichever are wanted: a server that damages some would
    /// otherwise see in what is read next whether they were among these.
    async fn open_blob(
        &mut self,
        host: &dyn Host,
        segment: &StoredSegment,
        blob: &str,
        rows: &Rows<'_>,
    ) -> Result<Vec<Arc<[u8]>>> {
        let held = self.payloads.records.get(&segment.id).filter(|_| blob == RECORDS).cloned();
        let bytes = match held {
            Some(bytes) => bytes,
            None => {
                let id = segment.id;
                let check = |replica: &Self, bytes: &[u8]| replica.check_bytes(id, bytes);
                self.whole(host, segment, blob, check).await?.0
            }
        };
        self.open_bytes(segment.id, blob, &bytes, rows)
    }

    /// A blob of sealed records of which all open, and what `open` makes of them: the one kept here, or if that is wrong one read anew.
    async fn whole<T>(
        &mut self,
        host: &dyn Host,
        segment: &StoredSegment,
        blob: &str,
        open: impl Fn(&Self, &[u8]) -> Result<T>,
    ) -> Result<(Arc<[u8]>, T)> {
        if blob == RECORDS && self.fetch == Fetch::Collection {
            self.cover(host).await?;
        }
        let mut last = false;
        loop {
            let bytes = self.read(host, segment.id, blob).await?;
            match open(self, &bytes) {
                Ok(made) => {
                    if blob == RECORDS {
                        self.payloads.records.insert(segment.id, Arc::clone(&bytes));
                    }
                    self.store.keep(host, segment.id, blob).await?;
                    return Ok((bytes, made));
                }
                Err(error) => {
                    let again = self.store.discard(host, Some(segment.id), Some(blob)).await?;
                    if !again || last {
                        return Err(error);
                    }
                    last = true;
                }
            }
        }
    }

    /// The metadata of every row of a segment that is there, from one pass over its records: each is opened once, into the room of the
    /// one before.
    pub async fn read_table(&mut self, host: &dyn Host, segment: &StoredSegment) -> Result<Table> {
        if !segment.may_have(RECORDS) {
            return Ok(TableBuilder::new(segment.rows as usize).table());
        }
        let (id, rows) = (segment.id, segment.rows as usize);
        let opened = |replica: &Self, bytes: &[u8]| replica.open_table(id, rows, bytes);
        match self.payloads.records.get(&id).cloned() {
            Some(bytes) => opened(self, &bytes)?,
            None => self.whole(host, segment, RECORDS, opened).await?.1,
        }
    }

    /// The words of a segment of the owner's that has them beside its rows.
    pub async fn read_terms(
        &mut self,
        host: &dyn Host,
        segment: &StoredSegment,
        kind: Kind,
    ) -> Result<Terms> {
        let (id, rows, name) = (segment.id, segment.rows, Id::from(WORDS));
        let open = |replica: &Self, bytes: &[u8]| {
            let (owner, directory) = (&replica.owner, &replica.directory);
            let one = open_rows(owner, directory, id, bytes, [(0, &name)].into_iter())?;
            Terms::read(one.first().map_or(&[], |one| one), kind, rows)
        };
        Ok(self.whole(host, segment, TERMS, open).await?.1)
    }

    /// What is no record, though its owner or a writer sealed it, is no matter of where it was kept: the inner error.
    fn open_table(&self, segment: SegmentId, rows: usize, bytes: &[u8]) -> Result<Result<Table>> {
        let mut table = TableBuilder::new(rows);
        let mut done = Ok(());
        let mut take = |row: u32, record: &[u8]| {
            if done.is_ok() {
                done = table.set(row as usize, record);
            }
        };
        let names = live(&self.directory, segment);
        if self.bundles(segment) {
            let all = self.open_bundle(segment, bytes)?;
            for (row, _) in names {
                take(row, row_of(&all, RECORDS, row)?);
            }
        } else {
            let mut whole = Ok(());
            let own = |row: u32, record: &[u8]| match self.own(segment, record) {
                Ok(record) => take(row, record),
                Err(error) => whole = Err(error),
            };
            each_row(&self.owner, &self.directory, segment, bytes, names, own)?;
            whole?;
        }
        Ok(done.map(|()| table.table()))
    }

    fn check_bytes(&self, segment: SegmentId, bytes: &[u8]) -> Result<()> {
        match self.bundles(segment) {
            true => self.open_bundle(segment, bytes).map(drop),
            false => check_records(&self.owner, &self.directory, segment, bytes),
        }
    }

    /// Whether the records of this segment's rows are sealed as one.
    pub(super) fn bundles(&self, segment: SegmentId) -> bool {
        let active = self.routing.table.as_ref().and_then(|table| table.active.as_ref());
        self.routing.cluster_of(segment).is_some() && active.is_some_and(|active| !active.apart)
    }

    /// What a record that was sealed by itself holds: in a cluster it is filled up.
    pub(super) fn own<'a>(&self, segment: SegmentId, record: &'a [u8]) -> Result<&'a [u8]> {
        if self.routing.cluster_of(segment).is_none() {
            return Ok(record);
        }
        unpadded(record).ok_or_else(|| {
            Error::Corrupt(
                "a record of a cluster ends before the bytes that it says it has.".into(),
            )
        })
    }

    /// What is one record in a cluster.
    fn open_bundle(&self, segment: SegmentId, bytes: &[u8]) -> Result<Vec<Arc<[u8]>>> {
        let (id, owner) = (Id::from(BUNDLE), &self.owner);
        let one = open_rows(owner, &self.directory, segment, bytes, [(0, &id)].into_iter())?;
        unpack(one.first().map_or(&[], |one| one))
    }

    fn open_bytes(
        &self,
        segment: SegmentId,
        blob: &str,
        bytes: &[u8],
        rows: &Rows<'_>,
    ) -> Result<Vec<Arc<[u8]>>> {
        if !self.bundles(segment) {
            let (owner, directory) = (&self.owner, &self.directory);
            let opened = open_rows(owner, directory, segment, bytes, rows.iter().copied())?;
            if self.routing.cluster_of(segment).is_none() {
                return Ok(opened);
            }
            return opened.iter().map(|one| Ok(Arc::from(self.own(segment, one)?))).collect();
        }
        let all = self.open_bundle(segment, bytes)?;
        rows.iter().map(|(row, _)| row_of(&all, blob, *row).cloned()).collect()
    }

    /// Whether the absence of a tag means something.
    pub fn has_tags(&self, segment: &StoredSegment) -> bool {
        self.description.filterable.is_empty()
            || !self.description.untagged.contains(&segment.id)
                && matches!(self.directory.origin(segment.id), Some(Origin::Owner))
    }

    /// The tags of a segment's rows; none where it has none.
    pub async fn tags(
        &mut self,
        host: &dyn Host,
        segment: &StoredSegment,
    ) -> Result<Option<Arc<FilterTags>>> {
        if !segment.may_have(TAGS) {
            return Ok(None);
        }
        if let Some(tags) = self.payloads.tags.get(&segment.id) {
            return Ok(Some(Arc::clone(tags)));
        }
        let bytes = self.read(host, segment.id, TAGS).await?;
        let tags = FilterTags::from_bytes(&bytes)
            .map_err(|error| SchemeError::from(EnvelopeError::from(error)))?;
        let tags = Arc::new(tags);
        self.payloads.tags.insert(segment.id, Arc::clone(&tags));
        Ok(Some(tags))
    }

    /// Which rows may pass the filter as far as tags tell, and whether that is all there is to test.
    pub async fn bound(
        &mut self,
        host: &dyn Host,
        segment: &StoredSegment,
        filter: &Filter,
    ) -> Result<Bound> {
        let tags = self.tags(host, segment).await?;
        let none = FilterTags::new();
        let tags = tags.as_deref().unwrap_or(&none);
        let tag = |field: &str, value: &[u8]| self.owner.filter_tag(field, value);
        Ok(filter.bound(segment.rows as usize, Some(tags), tag))
    }

    /// The blobs beside the rows of a new segment.
    pub fn seal_beside(
        &self,
        owner: &Owner,
        id: SegmentId,
        batch: &Batch,
    ) -> Result<IndexMap<&'static str, Arc<[u8]>>> {
        let mut blobs = IndexMap::new();
        let seal_as = |ids: &[Id], payloads: Vec<Vec<u8>>| -> Result<Arc<[u8]>> {
            let binding = owner.spec().binding();
            let place = Place { collection: &binding, segment: &id.0 };
            let rows: Vec<_> = ids.iter().cloned().zip(payloads).collect();
            let sealed = heavy(|| seal_records(owner.aead(), place, &rows));
            let sealed = sealed.map_err(SchemeError::Envelope)?;
            Ok(sealed.into())
        };
        let seal = |payloads| seal_as(&batch.ids, payloads);
        if batch.records.iter().any(|one| !one.is_empty()) {
            blobs.insert(RECORDS, seal(batch.records.iter().map(|one| one.to_vec()).collect())?);
        }
        if let Some(sparse) = self.description.sparse {
            let mut terms = TermsBuilder::new(sparse.kind(), batch.ids.len() as u32);
            heavy(|| {
                let mut each = (0..).zip(&batch.records);
                each.try_for_each(|(row, record)| terms.set(row, record))
            })?;
            blobs.insert(TERMS, seal_as(&[WORDS.into()], vec![terms.to_bytes()])?);
        }
        let kept = |row: usize| batch.original.as_ref().is_none_or(|original| original[row]);
        if self.description.multi.is_some() {
            blobs.insert(ORIGINALS, seal(batch.matrices.iter().map(|one| one.to_vec()).collect())?);
        } else if self.description.originals && (0..batch.ids.len()).any(kept) {
            let dimension = self.description.spec.dimension();
            let rows = batch.rows.chunks_exact(dimension).enumerate();
            let of = |(row, vector): (usize, &[f32])| original(vector, kept(row));
            blobs.insert(ORIGINALS, seal(rows.map(of).collect())?);
        }
        if !self.description.filterable.is_empty() {
            let tag = |field: &str, value: &[u8]| owner.filter_tag(field, value);
            let mut table = FilterTags::new();
            let mut any = false;
            for one in &batch.records {
                let tags = record::tags(one, &self.description.filterable, tag)?;
                any |= !tags.is_empty();
                table.push(&tags).map_err(|error| SchemeError::from(EnvelopeError::from(error)))?;
            }
            if any {
                blobs.insert(TAGS, table.to_bytes().into());
            }
        }
        Ok(blobs)
    }
}

/// Whether all rows of a segment that are there open in a blob of sealed records.
///
/// # Errors
/// [`Error::Corrupt`] or [`Error::Scheme`] for the first that does not.
pub fn check_records(
    owner: &Owner,
    directory: &SegmentDirectory,
    segment: SegmentId,
    bytes: &[u8],
) -> Result<()> {
    each_row(owner, directory, segment, bytes, live(directory, segment), |_, _| ())
}

/// The rows of a segment that are there, by name.
fn live(
    directory: &SegmentDirectory,
    segment: SegmentId,
) -> impl Iterator<Item = (u32, &Id)> + use<'_> {
    let names = directory.names(segment).into_iter().flatten();
    (0..).zip(names).filter_map(|(row, id)| Some((row, id?)))
}

fn row_of<'a>(all: &'a [Arc<[u8]>], blob: &str, row: u32) -> Result<&'a Arc<[u8]>> {
    all.get(row as usize)
        .ok_or_else(|| Error::Corrupt(format!("the {blob} of this cluster have no row {row}")))
}

/// Decrypts records of some rows.
fn open_rows<'a>(
    owner: &Owner,
    directory: &SegmentDirectory,
    segment: SegmentId,
    bytes: &[u8],
    rows: impl Iterator<Item = (u32, &'a Id)>,
) -> Result<Vec<Arc<[u8]>>> {
    let mut opened = Vec::with_capacity(rows.size_hint().0);
    each_row(owner, directory, segment, bytes, rows, |_, record| opened.push(Arc::from(record)))?;
    Ok(opened)
}

/// Decrypts records of some rows, under the key that the directory has for the segment, or the owner's own, and shows one after the other.
fn each_row<'a>(
    owner: &Owner,
    directory: &SegmentDirectory,
    segment: SegmentId,
    bytes: &[u8],
    rows: impl Iterator<Item = (u32, &'a Id)>,
    mut show: impl FnMut(u32, &[u8]),
) -> Result<()> {
    let batch =
        RecordBatch::parse(bytes).map_err(EnvelopeError::from).map_err(SchemeError::from)?;
    let binding = owner.spec().binding();
    let place = Place { collection: &binding, segment: &segment.0 };
    let root = directory.root(segment).cloned();
    let aead = root.as_deref().map_or_else(|| owner.aead(), SegmentRootKey::aead);
    let mut opener = RecordOpener::new(&batch, aead, place);
    for (row, id) in rows {
        if row >= batch.rows() {
            return Error::corrupt(format!("the sealed records of this segment have no row {row}"));
        }
        show(row, opener.open(id, row).map_err(SchemeError::Envelope)?);
    }
    Ok(())
}
