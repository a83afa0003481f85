//! Overlay: rows of which some are here already. The new ones are added and the others laid over what is here, in one commit.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ciphervec_owner::{Id, Metric};
use indexmap::IndexMap;

use crate::error::{Error, Result};
use crate::host::Host;
use crate::records::record::Record;
use crate::records::sparse::SparseVector;
use crate::replica::Replica;
use crate::replica::batch::{
    Batch, Beside, Records, changes, check_ids, check_metadatas, check_rows, check_sparse, laid,
    same_length,
};
use crate::view::shown;

/// What becomes of a row that is here already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// What is given is laid over it.
    #[default]
    Merge,
    /// Nothing.
    Keep,
}

/// What becomes of a row that is not here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// It is added.
    #[default]
    Add,
    /// Nothing.
    Skip,
}

/// Rows, checked, of which some have no vector.
pub struct Changes {
    pub ids: Vec<Id>,
    /// Of the rows that have one, end to end.
    pub embeddings: Vec<f32>,
    /// The bytes of their matrices, where rows have many vectors.
    pub matrices: Vec<Arc<[u8]>>,
    /// Which rows have one.
    pub there: Vec<bool>,
    metadatas: Vec<Option<String>>,
    documents: Vec<Option<String>>,
    sparse: Vec<Option<SparseVector>>,
}

/// A row as it is to be written.
struct Row<'a> {
    record: Vec<u8>,
    vector: Option<&'a [f32]>,
    matrix: Option<&'a Arc<[u8]>>,
}

impl Changes {
    /// Vectors are given of all rows, of none, or of those that `there` marks.
    pub fn new(
        (rows, matrices): (Records, Vec<Arc<[u8]>>),
        there: Option<Vec<bool>>,
        dimension: usize,
        metric: Metric,
    ) -> Result<Self> {
        let Records { ids, mut embeddings, metadatas, documents, sparse, .. } = rows;
        let mut faults = Vec::new();
        let count = check_rows(&mut embeddings, dimension, metric, "embeddings", &mut faults)?;
        check_ids(&ids, &mut faults);
        check_metadatas(&metadatas, &mut faults);
        check_sparse(&sparse, &mut faults);
        if !faults.is_empty() {
            return Err(Error::rows(faults));
        }
        let there = there.unwrap_or_else(|| vec![!embeddings.is_empty(); ids.len()]);
        same_length(ids.len(), there.len(), "embeddings")?;
        same_length(there.iter().filter(|one| **one).count(), count, "embeddings")?;
        let checked = Changes { ids, embeddings, matrices, there, metadatas, documents, sparse };
        checked.beside()?;
        Ok(checked)
    }

    /// What is given for each row beside its vector.
    pub fn beside(&self) -> Result<Vec<Beside<'_>>> {
        Ok(changes(self.ids.len(), &self.metadatas, &self.documents, &self.sparse)?.collect())
    }
}

impl Replica {
    /// Writes these rows as of now; how many. An id that comes twice counts as two changes, one after the other.
    pub async fn overlay(
        &mut self,
        host: &dyn Host,
        rows: &Changes,
        known: Known,
        unknown: Unknown,
    ) -> Result<usize> {
        let dimension = self.description.spec.dimension();
        let mut seen = HashSet::new();
        let here = rows.ids.iter().filter(|id| self.directory.locate(id).is_some());
        let here: Vec<_> = here.filter(|id| seen.insert(*id)).cloned().collect();
        let old: HashMap<_, _> = match known {
            Known::Merge => here.iter().zip(self.read_records(host, &here).await?).collect(),
            Known::Keep => HashMap::new(),
        };
        let present: HashSet<_> = here.iter().collect();
        let mut last: IndexMap<&Id, Row<'_>> = IndexMap::new();
        let mut vectors = rows.embeddings.chunks_exact(dimension);
        let mut matrices = rows.matrices.iter();
        for ((id, there), beside) in rows.ids.iter().zip(&rows.there).zip(rows.beside()?) {
            let (vector, matrix) = match there {
                true => (vectors.next(), matrices.next()),
                false => (None, None),
            };
            let stays = known == Known::Keep && (present.contains(id) || last.contains_key(id));
            if stays || unknown == Unknown::Skip && !present.contains(id) {
                continue;
            }
            let before = old.get(id).map_or(&[][..], |record| record);
            let new = || Row { record: before.to_vec(), vector, matrix };
            let row = last.entry(id).or_insert_with(new);
            row.record = laid(&row.record, beside)?;
            row.vector = vector.or(row.vector);
            row.matrix = matrix.or(row.matrix);
        }
        let left: Vec<Id> = last
            .iter()
            .filter(|(_, row)| row.vector.is_none())
            .map(|(id, _)| (*id).clone())
            .collect();
        if let Some(id) = left.iter().find(|id| !present.contains(id)) {
            return Error::input(format!(
                "id {} is not in {} and no vector was given for it.",
                shown(id),
                self.name()
            ));
        }
        let pairs = left.iter().filter_map(|id| Some((&**old.get(id)?, &*last.get(id)?.record)));
        say_stale(host, pairs)?;
        let kept = self.read_vectors(host, &left).await?;
        let mut read = kept.rows.chunks_exact(dimension).zip(kept.original);
        let mut read_matrices = kept.matrices.iter();
        let (mut batch, mut original) = (Batch::default(), Vec::with_capacity(last.len()));
        for (id, Row { record, vector, matrix }) in last {
            let matrix = if vector.is_some() { matrix } else { read_matrices.next() };
            batch.matrices.extend(matrix.cloned());
            let (vector, as_given) = match vector {
                Some(vector) => (vector, true),
                None => read.next().unwrap_or_default(),
            };
            batch.ids.push(id.clone());
            batch.rows.extend_from_slice(vector);
            batch.records.push(record);
            original.push(as_given);
        }
        batch.original = Some(original);
        let replaced: Vec<_> =
            batch.ids.iter().filter(|id| present.contains(id)).cloned().collect();
        self.write(host, &mut batch, &replaced).await?;
        Ok(batch.ids.len())
    }
}

/// Warns about rows whose document changes and whose vector does not, by their records before and after.
pub fn say_stale<'a>(
    host: &dyn Host,
    rows: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<()> {
    let mut stale = 0;
    for (old, new) in rows {
        let (before, now) = (Record::read(old)?.document, Record::read(new)?.document);
        stale += usize::from(before.is_some() && before != now);
    }
    if stale > 0 {
        host.warn(&format!(
            "{stale} {} got another document and kept the vector of the old one: searches find the new text by the meaning of the \
             old. Give embeddings with the documents.",
            if stale == 1 { "row" } else { "rows" }
        ));
    }
    Ok(())
}
