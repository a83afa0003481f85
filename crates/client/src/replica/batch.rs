//! Rows as a caller passes them, checked.

use std::collections::HashSet;
use std::sync::Arc;

use ciphervec_owner::{Id, IndexSpec, Metric};

use crate::change::NewSegment;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::random::random;
use crate::records::matrix::Tokens;
use crate::records::record::{self, Fields};
use crate::records::sparse::SparseVector;
use crate::view::shown;

const MAX_RECORD: usize = 64 << 20;
/// Rows that a warning names.
const SHOWN: usize = 5;

/// What becomes of rows whose vector is zero, where the metric compares directions alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnZero {
    /// None of the rows is taken.
    #[default]
    Refuse,
    /// They are left out, and a warning counts them.
    Skip,
}

/// Rows to add, or to change.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// One a row; fresh ones where there are none.
    pub ids: Vec<Id>,
    /// Vectors end to end; under `hamming` all 0 and 1, or all −1 and 1.
    pub embeddings: Vec<f32>,
    /// JSON objects, or nothing for all rows.
    pub metadatas: Vec<Option<String>>,
    /// Texts, or nothing for all rows.
    pub documents: Vec<Option<String>>,
    /// Sparse vectors, or nothing for all rows: of collections that are made with [`crate::Sparse::Vectors`].
    pub sparse: Vec<Option<SparseVector>>,
    /// The vectors of each row, instead of `embeddings`: of collections that are made with [`crate::Choices::multi`].
    pub multi: Vec<Tokens>,
    /// What becomes of rows that are to be added and have no direction.
    pub on_zero: OnZero,
}

impl Records {
    /// Those that are to be added to a collection of this kind. Where lists have other lengths than there are rows, that is told later.
    pub fn without_zeros(mut self, host: &dyn Host, spec: &IndexSpec) -> Self {
        if self.on_zero == OnZero::Refuse || spec.metric() != Metric::Cosine {
            return self;
        }
        let rows = self.embeddings.chunks(spec.dimension());
        let kept: Vec<_> = rows.map(|row| row.iter().any(|x| *x != 0.0)).collect();
        let lengths =
            [self.ids.len(), self.metadatas.len(), self.documents.len(), self.sparse.len()];
        let zeros = kept.iter().filter(|kept| !**kept).count();
        if zeros == 0 || lengths.iter().any(|length| ![0, kept.len()].contains(length)) {
            return self;
        }
        let names = self.ids.iter().zip(&kept).filter(|(_, kept)| !**kept).map(|(id, _)| shown(id));
        let mut named = names.clone().take(SHOWN).collect::<Vec<_>>().join(", ");
        if !named.is_empty() {
            named = format!(": {named}{}", if names.count() > SHOWN { " …" } else { "" });
        }
        let rows = if zeros == 1 { "row" } else { "rows" };
        host.warn(&format!(
            "{zeros} {rows} of {} left out: a zero vector has no direction{named}.",
            kept.len()
        ));
        let vectors = self.embeddings.chunks(spec.dimension()).zip(&kept);
        self.embeddings =
            vectors.filter(|(_, kept)| **kept).flat_map(|(row, _)| row).copied().collect();
        self.ids = those(self.ids, &kept);
        self.metadatas = those(self.metadatas, &kept);
        self.documents = those(self.documents, &kept);
        self.sparse = those(self.sparse, &kept);
        self
    }
}

fn those<T>(column: Vec<T>, kept: &[bool]) -> Vec<T> {
    column.into_iter().zip(kept).filter(|(_, kept)| **kept).map(|(one, _)| one).collect()
}

/// Rows ready to be sealed.
#[derive(Clone, Default)]
pub struct Batch {
    pub ids: Vec<Id>,
    pub rows: Vec<f32>,
    /// What is sealed beside each row; empty where nothing is.
    pub records: Vec<Vec<u8>>,
    /// Which rows are as they were put in, and not unsealed; none: all of them.
    pub original: Option<Vec<bool>>,
    /// The bytes of the matrix of each row, in collections whose rows have many vectors.
    pub matrices: Vec<Arc<[u8]>>,
    /// What they were sealed into, so that a second attempt sends the same bytes.
    pub sealed: Vec<NewSegment>,
    /// Whether they are to be sealed without those of other segments.
    pub alone: bool,
}

impl Batch {
    /// Rows for a collection of this kind, and the bytes of their matrices where rows have many vectors.
    pub fn new(
        given: Records,
        matrices: Vec<Arc<[u8]>>,
        dimension: usize,
        metric: Metric,
    ) -> Result<Self> {
        let Records { ids, mut embeddings, metadatas, documents, sparse, .. } = given;
        let mut faults = Vec::new();
        let count = check_rows(&mut embeddings, dimension, metric, "embeddings", &mut faults)?;
        let ids = if ids.is_empty() { fresh_ids(count)? } else { ids };
        check_ids(&ids, &mut faults);
        let what = if matrices.is_empty() { "embeddings" } else { "multi_embeddings" };
        same_length(ids.len(), count, what)?;
        let changes = changes(ids.len(), &metadatas, &documents, &sparse)?;
        check_metadatas(&metadatas, &mut faults);
        check_sparse(&sparse, &mut faults);
        if !faults.is_empty() {
            return Err(Error::rows(faults));
        }
        distinct(&ids)?;
        let records = changes.map(|beside| changed(&[], beside, &[]));
        Ok(Batch {
            records: records.collect::<Result<_>>()?,
            ids,
            rows: embeddings,
            matrices,
            ..Batch::default()
        })
    }

    /// Rows from `start` up to `stop`.
    pub fn part(&self, start: usize, stop: usize, dimension: usize) -> Self {
        Batch {
            ids: self.ids[start..stop].to_vec(),
            rows: self.rows[start * dimension..stop * dimension].to_vec(),
            records: self.records[start..stop].to_vec(),
            original: self.original.as_ref().map(|original| original[start..stop].to_vec()),
            matrices: self.matrices.get(start..stop).map(<[_]>::to_vec).unwrap_or_default(),
            ..Batch::default()
        }
    }
}

/// How many rows these are; what is wrong with some of them.
pub fn check_rows(
    rows: &mut [f32],
    dimension: usize,
    metric: Metric,
    what: &str,
    faults: &mut Vec<(usize, String)>,
) -> Result<usize> {
    if !rows.len().is_multiple_of(dimension) {
        return Error::input(format!(
            "{what} must have {dimension} dimensions, got {} numbers. The dimension is fixed when the collection is created.",
            rows.len()
        ));
    }
    if metric == Metric::Hamming {
        check_bits(rows, what)?;
        return Ok(rows.len() / dimension);
    }
    for (row, vector) in rows.chunks_exact(dimension).enumerate() {
        if let Some(column) = vector.iter().position(|x| !x.is_finite()) {
            let says = if vector[column].is_nan() {
                "is NaN"
            } else {
                "is infinite, or beyond float32's range"
            };
            faults
                .push((row, format!("{what}[{row}][{column}] {says}. Remove or repair that row.")));
        } else if metric == Metric::Cosine && vector.iter().all(|x| *x == 0.0) {
            faults.push((
                row,
                format!(
                    "{what}[{row}] is the zero vector, which has no direction for metric \"cosine\". Remove it, or use metric \"l2\" or \
                     \"ip\"."
                ),
            ));
        }
    }
    Ok(rows.len() / dimension)
}

/// Makes 0 and 1 into −1 and 1.
fn check_bits(rows: &mut [f32], what: &str) -> Result<()> {
    let has = |value: f32| rows.contains(&value);
    let (zero, minus) = (has(0.0), has(-1.0));
    let strange = rows.iter().find(|x| ![0.0, 1.0, -1.0].contains(*x));
    if strange.is_some() || zero && minus {
        let came = strange
            .map_or("-1, 0 and 1 mixed".to_owned(), |strange| format!("the value {strange}"));
        return Error::input(format!(
            "{what} for metric \"hamming\" must be booleans, all 0/1, or all -1/+1; got {came}. Binarise first, e.g. x > 0."
        ));
    }
    if !minus {
        rows.iter_mut().for_each(|x| *x = 2.0 * *x - 1.0);
    }
    Ok(())
}

/// That each may be one.
pub fn check_ids(ids: &[Id], faults: &mut Vec<(usize, String)>) {
    for (i, id) in ids.iter().enumerate() {
        if id.validate().is_err() {
            let actual = id.to_bytes().len() - 1;
            faults.push((i, format!("ids[{i}] must be 1 to 65,535 bytes of UTF-8, got {actual}.")));
        }
    }
}

/// That each is an object whose fields a filter can name.
pub fn check_metadatas(metadatas: &[Option<String>], faults: &mut Vec<(usize, String)>) {
    for (row, text) in metadatas.iter().enumerate() {
        let Some(text) = text else { continue };
        match serde_json::from_str::<Fields<'_>>(text) {
            Err(error) => {
                faults.push((row, format!("metadatas[{row}] must be an object or null: {error}.")))
            }
            Ok(fields) => {
                let strange = fields.0.keys().find(|name| name.is_empty() || name.starts_with('$'));
                faults.extend(strange.map(|name| {
                    (row, format!("metadatas[{row}] has the field {name:?}; names are not empty and don't start with \"$\"."))
                }));
            }
        }
    }
}

/// That no id occurs twice.
pub fn distinct(ids: &[Id]) -> Result<()> {
    let mut seen = HashSet::with_capacity(ids.len());
    match ids.iter().position(|id| !seen.insert(id)) {
        None => Ok(()),
        Some(position) => Err(Error::DuplicateId(format!(
            "id {} occurs twice in this batch (second time at position {position}); nothing was written. Make the ids distinct.",
            shown(&ids[position])
        ))),
    }
}

/// That there is one entry for each of so many ids.
pub fn same_length(expected: usize, length: usize, what: &str) -> Result<()> {
    if length != expected {
        return Error::input(format!(
            "{what} must have one entry per id: expected {expected}, got {length}."
        ));
    }
    Ok(())
}

/// That each sparse vector is as one has to be.
pub fn check_sparse(sparse: &[Option<SparseVector>], faults: &mut Vec<(usize, String)>) {
    for (row, one) in sparse.iter().enumerate() {
        let fault = one.as_ref().and_then(SparseVector::fault);
        faults.extend(fault.map(|fault| (row, format!("sparse_embeddings[{row}] {fault}."))));
    }
}

/// The metadata, document and sparse vector that are given for a row.
#[derive(Clone, Copy)]
pub struct Beside<'a> {
    metadata: Option<&'a str>,
    document: Option<&'a str>,
    sparse: Option<&'a SparseVector>,
}

/// What is given for each row.
pub fn changes<'a>(
    count: usize,
    metadatas: &'a [Option<String>],
    documents: &'a [Option<String>],
    sparse: &'a [Option<SparseVector>],
) -> Result<impl Iterator<Item = Beside<'a>>> {
    for (what, given) in [
        ("metadatas", metadatas.len()),
        ("documents", documents.len()),
        ("sparse_embeddings", sparse.len()),
    ] {
        if given > 0 {
            same_length(count, given, what)?;
        }
    }
    let of =
        |given: &'a [Option<String>], row: usize| given.get(row).and_then(|one| one.as_deref());
    Ok((0..count).map(move |row| Beside {
        metadata: of(metadatas, row),
        document: of(documents, row),
        sparse: sparse.get(row).and_then(Option::as_ref),
    }))
}

/// The bytes of a record with a change laid over it, and without some fields of its metadata before.
pub fn changed(old: &[u8], beside: Beside<'_>, removed: &[String]) -> Result<Vec<u8>> {
    fitting(record::merge(old, beside.metadata, beside.document, removed)?, beside)
}

/// As [`changed`], but a field that is given as null goes.
pub fn laid(old: &[u8], beside: Beside<'_>) -> Result<Vec<u8>> {
    fitting(record::lay(old, beside.metadata, beside.document)?, beside)
}

fn fitting(bytes: Vec<u8>, beside: Beside<'_>) -> Result<Vec<u8>> {
    let bytes = match beside.sparse {
        Some(sparse) => record::with_sparse(&bytes, sparse)?,
        None => bytes,
    };
    if bytes.len() > MAX_RECORD {
        return Error::input(format!(
            "the metadata and document of a row take {} bytes; the limit is {MAX_RECORD}. Store a reference to the document instead.",
            bytes.len()
        ));
    }
    Ok(bytes)
}

/// Ids that nobody else makes up.
fn fresh_ids(count: usize) -> Result<Vec<Id>> {
    let fresh = |_| {
        let mut bytes: [u8; 16] = random()?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let text = crate::hex::Hex(bytes).to_string();
        let (a, b, c, d, e) = (&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]);
        Ok(Id::Text(format!("{a}-{b}-{c}-{d}-{e}")))
    };
    (0..count).map(fresh).collect()
}
