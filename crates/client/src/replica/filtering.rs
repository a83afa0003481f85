//! Filtering: which rows pass, and why there may be none.
//!
//! Keyed tags tell of equality on filterable fields, without opening anything; else metadata decides, which is opened.

use std::sync::Arc;

use ciphervec_owner::protect::filter::FilterTag;
use ciphervec_owner::{Id, SegmentId};

use crate::change::{RECORDS, StoredSegment};
use crate::error::Result;
use crate::host::Host;
use crate::records::Filter;
use crate::records::{FieldKinds, Table};
use crate::replica::Replica;

/// Bytes of records that are read for an explanation.
const MOST_READ: u64 = 32 << 20;
/// Rows that are opened at once.
const MANY: usize = 1 << 14;

impl Replica {
    /// The rows that pass, in the order of insertion, at most so many. By keyed tags where their owner authenticated them, else by
    /// metadata, which decides.
    pub async fn matching(
        &mut self,
        host: &dyn Host,
        filter: &Filter,
        by_tags: bool,
        most: usize,
    ) -> Result<Vec<(SegmentId, Vec<u32>)>> {
        let (mut found, mut count) = (Vec::new(), 0);
        for segment in self.read_entries() {
            if count >= most {
                break;
            }
            let more = if most == usize::MAX { most } else { most - count };
            let mut rows = self.view().live_rows(segment.id);
            let mut decided = false;
            let table = self.payloads.tables.get(segment.id);
            if let Some(table) = table.filter(|table| table.tells(filter)) {
                let passing = table.matches(filter);
                rows.retain(|row| passing.get(*row as usize).copied().unwrap_or(false));
                decided = !filter.has_document();
            } else if by_tags && self.has_tags(&segment) {
                let bound = self.bound(host, &segment, filter).await?;
                rows.retain(|row| bound.rows.get(*row as usize).copied().unwrap_or(false));
                decided = bound.exact && self.states.present.is_some();
            }
            if !decided {
                rows = self.looked_at(host, &segment, rows, filter, more).await?;
            }
            rows.truncate(more);
            count += rows.len();
            found.push((segment.id, rows));
        }
        Ok(found)
    }

    /// The ids of rows that are there.
    pub fn ids_of(&self, rows: &[(SegmentId, Vec<u32>)]) -> Vec<Id> {
        let ids = rows.iter().flat_map(|(segment, rows)| {
            let names: Vec<_> = self.directory.names(*segment).into_iter().flatten().collect();
            rows.iter().filter_map(move |row| names.get(*row as usize).copied().flatten().cloned())
        });
        ids.collect()
    }

    /// Which of these rows pass by their records, at most so many. They are opened some at a time until a quarter of the segment was, by this
    /// filter and those before, and then once and for all.
    async fn looked_at(
        &mut self,
        host: &dyn Host,
        segment: &StoredSegment,
        rows: Vec<u32>,
        filter: &Filter,
        most: usize,
    ) -> Result<Vec<u32>> {
        // A table knows nothing of documents.
        let tabular = !filter.has_document();
        if rows.is_empty() && self.routing.cluster_of(segment.id).is_some() {
            // Read like the others: that no row of it is left must not show.
            match tabular {
                true => drop(self.tabulate(host, segment).await?),
                false => drop(self.records(host, segment, &[]).await?),
            }
            return Ok(rows);
        }
        let (before, enough) =
            (self.payloads.tables.look(segment.id, 0), segment.rows as usize / 4);
        let (mut found, mut looked) = (Vec::new(), 0);
        for some in rows.chunks(MANY) {
            if tabular && before + looked + some.len() > enough && most == usize::MAX {
                let table = self.tabulate(host, segment).await?;
                if table.tells(filter) {
                    let passing = table.matches(filter);
                    let passes = |row: &u32| passing.get(*row as usize).copied().unwrap_or(false);
                    return Ok(rows.into_iter().filter(passes).collect());
                }
            }
            let records = self.records_at(host, segment, some).await?;
            for (row, record) in some.iter().zip(records) {
                looked += 1;
                if filter.matches(&record)? {
                    found.push(*row);
                }
                if found.len() >= most {
                    break;
                }
            }
            host.check()?;
            if found.len() >= most {
                break;
            }
        }
        self.payloads.tables.look(segment.id, looked);
        Ok(found)
    }

    /// The records of rows that are there.
    async fn records_at(
        &mut self,
        host: &dyn Host,
        segment: &StoredSegment,
        rows: &[u32],
    ) -> Result<Vec<Arc<[u8]>>> {
        let names = self.ids_of(&[(segment.id, rows.to_vec())]);
        let rows: Vec<_> = rows.iter().copied().zip(&names).collect();
        self.records(host, segment, &rows).await
    }

    /// The metadata of every row of a segment that is there, which is held.
    async fn tabulate(&mut self, host: &dyn Host, segment: &StoredSegment) -> Result<Arc<Table>> {
        if let Some(table) = self.payloads.tables.get(segment.id) {
            return Ok(table);
        }
        let table = Arc::new(self.read_table(host, segment).await?);
        self.payloads.tables.keep(segment.id, Arc::clone(&table));
        Ok(table)
    }

    /// Which rows have all of these tags, as their owner authenticated them: of every segment, so that no read tells which rows were
    /// found. None of a segment that its owner did not tag.
    pub async fn tagged(
        &mut self,
        host: &dyn Host,
        wanted: &[FilterTag],
    ) -> Result<Vec<(SegmentId, Vec<bool>)>> {
        let mut masks = Vec::new();
        for segment in self.read_entries() {
            let tags = match self.has_tags(&segment) {
                true => self.tags(host, &segment).await?,
                false => None,
            };
            let mask = tags
                .map_or_else(|| vec![false; segment.rows as usize], |tags| tags.matches(wanted));
            masks.push((segment.id, mask));
        }
        Ok(masks)
    }

    /// The tags that a row has which passes the filter.
    pub fn wanted(&self, filter: &Filter) -> Vec<FilterTag> {
        filter
            .equalities()
            .iter()
            .map(|(field, value)| self.owner.filter_tag(field, value))
            .collect()
    }

    /// Whether all of these ids pass the filter, by their own records.
    pub async fn all_pass(&mut self, host: &dyn Host, filter: &Filter, ids: &[Id]) -> Result<bool> {
        for record in self.read_records(host, ids).await? {
            if !filter.matches(&record)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Warns about a filter that no row can pass as the collection is, which is mostly a slip: a field that no row has, or values of
    /// other kinds.
    pub async fn say_why(&mut self, host: &dyn Host, filter: &Filter) -> Result<()> {
        let entries = self.read_entries();
        let unread = entries.iter().filter(|one| self.payloads.tables.get(one.id).is_none());
        let bytes: u64 = unread.filter_map(|one| one.blobs.get(RECORDS)).sum();
        if self.directory.is_empty() || bytes > MOST_READ {
            return Ok(());
        }
        let mut kinds = FieldKinds::default();
        for segment in &entries {
            kinds.add(&*self.tabulate(host, segment).await?);
        }
        let why = kinds.why_none(filter);
        if !why.is_empty() {
            host.warn(&format!("no row of {} passes the filter: {why}.", self.name()));
        }
        Ok(())
    }
}
