//! What the owner remembers of every segment: ids, norms, deleted rows. Sidecars enter; places and names leave. Owner only.

use super::owner::Owner;
use super::secrets::SegmentSecrets;
use crate::error::{Error, Result};
use crate::id::Id;
use crate::sidecar::{Sidecar, associated_data};
use ciphervec_he::sealed::SegmentId;
use std::collections::HashMap;
use std::sync::OnceLock;

/// One segment as the owner knows it.
pub(super) struct Entry {
    pub id: SegmentId,
    pub sidecar: Sidecar,
    pub deleted: Vec<bool>,
    pub secrets: OnceLock<SegmentSecrets>,
}

impl Entry {
    pub fn norm(&self, row: usize) -> f64 {
        self.sidecar.norms.get(row).map_or(1.0, |&norm| f64::from(norm))
    }
}

/// The owner's view of an index: which id lies where. Built from sidecars, which the server cannot read.
#[derive(Default)]
pub struct Catalogue {
    entries: Vec<Entry>,
    places: HashMap<Id, (SegmentId, u32)>,
}

/// Rows that a query may return, for filters that the owner applies itself.
pub struct Selection {
    rows: HashMap<SegmentId, Vec<bool>>,
}

impl Selection {
    pub(super) fn allows(&self, segment: SegmentId, row: usize) -> bool {
        self.rows.get(&segment).is_some_and(|rows| rows[row])
    }
}

impl Catalogue {
    /// An empty catalogue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Learns a segment from its sidecar; `deleted` lists rows that are gone.
    ///
    /// # Errors
    /// A sidecar that does not open, a segment or an id that is known already, rows beyond the segment.
    pub fn add(
        &mut self,
        owner: &Owner,
        id: SegmentId,
        sidecar: &[u8],
        deleted: &[u32],
    ) -> Result<()> {
        if self.entry(id).is_some() {
            return Err(Error::DuplicateSegment(id.to_string()));
        }
        let binding = owner.spec().binding();
        let sidecar = Sidecar::open(owner.aead(), &associated_data(&binding, &id.0), sidecar)?;
        let mut flags = vec![false; sidecar.rows as usize];
        for &row in deleted {
            *flags.get_mut(row as usize).ok_or_else(|| Error::Range {
                what: "a deleted row",
                expected: format!("below {}", sidecar.rows),
                actual: row.to_string(),
            })? = true;
        }
        let live = || sidecar.ids.iter().enumerate().filter(|(row, _)| !flags[*row]);
        if let Some((_, taken)) = live().find(|(_, name)| self.places.contains_key(name)) {
            return Err(Error::DuplicateId(taken.clone()));
        }
        let before = self.places.len();
        let places: Vec<(Id, u32)> = live().map(|(row, name)| (name.clone(), row as u32)).collect();
        let expected = before + places.len();
        self.places.reserve(places.len());
        self.places.extend(places.into_iter().map(|(name, row)| (name, (id, row))));
        if self.places.len() != expected {
            self.places.retain(|_, (segment, _)| *segment != id);
            return Err(Error::Catalogue {
                segment: id.to_string(),
                detail: "its sidecar names one id twice".to_owned(),
            });
        }
        self.entries.push(Entry { id, sidecar, deleted: flags, secrets: OnceLock::new() });
        Ok(())
    }

    /// Forgets a segment; whether it was known.
    pub fn remove(&mut self, id: SegmentId) -> bool {
        let Some(index) = self.entries.iter().position(|entry| entry.id == id) else {
            return false;
        };
        let entry = self.entries.remove(index);
        for name in &entry.sidecar.ids {
            if self.places.get(name).is_some_and(|(segment, _)| *segment == id) {
                self.places.remove(name);
            }
        }
        true
    }

    /// Marks a record as gone: it is never returned again. Its place, or `None` if it is unknown.
    pub fn mark_deleted(&mut self, name: &Id) -> Option<(SegmentId, u32)> {
        let (segment, row) = self.places.remove(name)?;
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == segment) {
            entry.deleted[row as usize] = true;
        }
        Some((segment, row))
    }

    /// Where a record lies.
    pub fn locate(&self, name: &Id) -> Option<(SegmentId, u32)> {
        self.places.get(name).copied()
    }

    /// Live records.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether no record is live.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Live records with their places, in the order of segments and rows.
    pub fn records(&self) -> impl Iterator<Item = (&Id, SegmentId, u32)> {
        self.entries.iter().flat_map(|entry| {
            let rows = entry.sidecar.ids.iter().enumerate().filter(|(row, _)| !entry.deleted[*row]);
            rows.map(|(row, name)| (name, entry.id, row as u32))
        })
    }

    /// The norm a record had before it was scaled to unit length.
    pub fn norm(&self, name: &Id) -> Option<f64> {
        let (segment, row) = self.locate(name)?;
        self.entry(segment).map(|entry| entry.norm(row as usize))
    }

    /// Segments with their rows, deleted ones included, and levels.
    pub fn segments(&self) -> impl Iterator<Item = (SegmentId, u32, u8)> {
        self.entries.iter().map(|entry| (entry.id, entry.sidecar.rows, entry.sidecar.level))
    }

    /// The deepest level of any segment: what a query must reach.
    pub fn top_level(&self) -> u8 {
        self.entries.iter().map(|entry| entry.sidecar.level).max().unwrap_or(0)
    }

    /// The rows of these records; unknown names are passed over.
    pub fn select<'a>(&self, names: impl IntoIterator<Item = &'a Id>) -> Selection {
        let empty = self.entries.iter().map(|entry| (entry.id, vec![false; entry.deleted.len()]));
        let mut rows: HashMap<SegmentId, Vec<bool>> = empty.collect();
        for (segment, row) in names.into_iter().filter_map(|name| self.locate(name)) {
            if let Some(flags) = rows.get_mut(&segment) {
                flags[row as usize] = true;
            }
        }
        Selection { rows }
    }

    pub(super) fn entry(&self, id: SegmentId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}
