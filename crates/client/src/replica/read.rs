//! Records and vectors of rows, by their ids.

use std::collections::HashMap;
use std::sync::Arc;

use ciphervec_owner::{Error as SchemeError, Id, SegmentId};

use crate::change::{ORIGINALS, ROWS, StoredSegment};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::records::original::{Kept, read_kept};
use crate::replica::Replica;
use crate::sorting::sort_by;
use crate::threads::heavy;

/// Vectors, and which of them are as they were put in.
pub struct Vectors {
    pub rows: Vec<f32>,
    pub original: Vec<bool>,
    /// The bytes of the matrix of each row, where rows have many vectors.
    pub matrices: Vec<Arc<[u8]>>,
}

/// Ids of one segment: their positions and rows.
type Group<'a> = (Arc<StoredSegment>, Vec<(usize, u32, &'a Id)>);

impl Replica {
    /// Clusters that no row is left of are among them where all others are.
    pub(super) fn by_segment<'a>(&self, ids: &'a [Id]) -> Result<Vec<Group<'a>>> {
        let listing = self.store.listing();
        let mut groups: Vec<Group<'a>> = Vec::new();
        let mut places: HashMap<SegmentId, usize> = HashMap::new();
        for (position, (segment, row)) in self.view().places(ids)?.into_iter().enumerate() {
            let Some(entry) = listing.segments.get(&segment) else { continue };
            let at = *places.entry(segment).or_insert_with(|| {
                groups.push((Arc::clone(entry), Vec::new()));
                groups.len() - 1
            });
            groups[at].1.push((position, row, &ids[position]));
        }
        let clusters = groups.iter().filter(|(one, _)| self.routing.cluster_of(one.id).is_some());
        let emptied = self.routing.emptied(clusters.count());
        if !emptied.is_empty() {
            let held = self.directory.quarantined();
            let read = |id: &&SegmentId| !held.contains(id) && !self.reasons.contains_key(id);
            let emptied = emptied.iter().filter(read).filter_map(|id| listing.segments.get(id));
            groups.extend(emptied.map(|entry| (Arc::clone(entry), Vec::new())));
            let turn = |one: &StoredSegment| listing.segments.get_index_of(&one.id);
            sort_by(&mut groups, |(a, _), (b, _)| turn(a).cmp(&turn(b)));
        }
        Ok(groups)
    }

    /// What is stored beside each of these ids, as the bytes that were sealed.
    pub async fn read_records(&mut self, host: &dyn Host, ids: &[Id]) -> Result<Vec<Arc<[u8]>>> {
        let mut found: Vec<Arc<[u8]>> = vec![Arc::from([]); ids.len()];
        for (segment, places) in self.by_segment(ids)? {
            let rows: Vec<_> = places.iter().map(|(_, row, id)| (*row, *id)).collect();
            let records = self.records(host, &segment, &rows).await?;
            places
                .iter()
                .zip(records)
                .for_each(|((position, ..), record)| found[*position] = record);
        }
        Ok(found)
    }

    /// The vectors of these ids: where what was put in was not kept they are unsealed, to within the precision of the seal.
    pub async fn read_vectors(&mut self, host: &dyn Host, ids: &[Id]) -> Result<Vectors> {
        let dimension = self.description.spec.dimension();
        let mut found = Vectors {
            rows: vec![0.0; ids.len() * dimension],
            original: vec![false; ids.len()],
            matrices: Vec::new(),
        };
        if self.description.multi.is_some() {
            found.matrices = vec![Arc::from([]); ids.len()];
        }
        for (segment, places) in self.by_segment(ids)? {
            let rows: Vec<_> = places.iter().map(|(_, row, id)| (*row, *id)).collect();
            let kept = self.originals(host, &segment, &rows).await?;
            let mut left = Vec::new();
            for ((position, row, id), vector) in places.iter().zip(kept) {
                match vector {
                    Some(Kept { vector, matrix }) => {
                        found.rows[position * dimension..][..dimension].copy_from_slice(&vector);
                        found.original[*position] = true;
                        if let Some(matrix) = matrix {
                            found.matrices[*position] = matrix;
                        }
                    }
                    None => left.push((*position, *row, *id)),
                }
            }
            if left.is_empty() && (segment.has(ORIGINALS) || !places.is_empty()) {
                continue;
            }
            let rows: Vec<_> = left.iter().map(|(_, row, _)| *row as usize).collect();
            let mut unsealed = self.unseal(host, segment.id, &rows).await?;
            for ((position, _, id), row) in left.iter().zip(unsealed.chunks_exact_mut(dimension)) {
                self.view().rescale(segment.id, id, row);
                found.rows[position * dimension..][..dimension].copy_from_slice(row);
            }
        }
        Ok(found)
    }

    /// The vectors that these bytes of rows are kept as.
    pub fn vectors_of_kept(&self, bytes: &[Arc<[u8]>]) -> Result<Vectors> {
        let (dimension, multi) =
            (self.description.spec.dimension(), self.description.multi.as_deref());
        let mut found =
            Vectors { rows: Vec::new(), original: vec![true; bytes.len()], matrices: Vec::new() };
        for one in bytes {
            if let Some(Kept { vector, matrix }) = heavy(|| read_kept(one, dimension, multi))? {
                found.rows.extend(vector);
                found.matrices.extend(matrix);
            }
        }
        Ok(found)
    }

    pub(super) async fn unseal(
        &mut self,
        host: &dyn Host,
        id: SegmentId,
        rows: &[usize],
    ) -> Result<Vec<f32>> {
        let sealed = self.store.read(host, id, ROWS).await?;
        match heavy(|| self.owner.unseal_rows(&sealed, Some(rows), &self.directory)) {
            Ok(unsealed) => {
                self.store.keep(host, id, ROWS).await?;
                Ok(unsealed)
            }
            Err(error) => {
                // Whatever becomes of that, the error is that of the check.
                let _ = self.store.discard(host, Some(id), Some(ROWS)).await;
                Err(self.checked(host, error).await)
            }
        }
    }

    /// What failed: a segment that failed its check is not used any more from now on.
    pub async fn checked(&mut self, host: &dyn Host, error: SchemeError) -> Error {
        let SchemeError::Tampered { segments } = &error else { return error.into() };
        let (message, segments) = (error.to_string(), segments.clone());
        match self.hold(host, &segments, &message).await {
            Ok(()) => Error::Tampered { message, segments },
            Err(error) => error,
        }
    }
}
