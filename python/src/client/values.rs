//! What Python passes: choices, rows, selections, questions.

use std::str::FromStr;

use ciphervec_client::{
    Asked, Audience, Bm25, Choices, Clusters, Fetch, Fusion, Hybrid, OnZero, Parts, Records,
    Selection, Sparse, SparseVector,
};
use ciphervec_owner::{Id, Network};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

use crate::arrays;
use crate::errors::{InvalidInput, Raise};
use crate::ids::{self, PyId};

/// One of the names of an enum.
fn named<T: FromStr<Err = ciphervec_owner::Error>>(name: &str) -> PyResult<T> {
    name.parse().map_err(|error: ciphervec_owner::Error| error.raise())
}

/// How a collection is to be routed.
#[derive(FromPyObject)]
struct PyClusters {
    count: Option<u32>,
    probes: Option<u32>,
    decoys: Option<u32>,
    recall: f64,
    server_learns_queries: bool,
    oblivious: bool,
}

/// Within a tuple the k1 and b of BM25, or none for sparse vectors.
pub type PySparse = (Option<(f64, f64)>,);

/// As it is given.
pub fn sparse((bm25,): PySparse) -> Sparse {
    match bm25 {
        Some((k1, b)) => Sparse::Bm25(Bm25 { k1, b }),
        None => Sparse::Vectors,
    }
}

/// Indices and weights of a sparse vector.
type Pairs = (Vec<u32>, Vec<f32>);

fn vector((indices, values): Pairs) -> SparseVector {
    SparseVector { indices, values }
}

/// What a new collection is to be.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PyChoices {
    name: String,
    dimension: usize,
    metric: String,
    mode: String,
    precision: String,
    filterable: Vec<String>,
    originals: Option<bool>,
    routing: Option<PyClusters>,
    scheme: String,
    bits: Option<u32>,
    network: Option<(f64, f64)>,
    center: Vec<f32>,
    sparse: Option<PySparse>,
    embedding_function: Option<String>,
}

/// Bytes a second, seconds there and back.
pub fn network((bytes_per_second, round_trip): (f64, f64)) -> Network {
    Network { bytes_per_second, round_trip }
}

/// As a dictionary has them.
pub fn choices(given: &Bound<'_, PyAny>) -> PyResult<Choices> {
    let given: PyChoices = given.extract()?;
    Ok(Choices {
        metric: named(&given.metric)?,
        mode: named(&given.mode)?,
        precision: named(&given.precision)?,
        filterable: given.filterable,
        originals: given.originals,
        routing: given.routing.map(|of| Clusters {
            count: of.count,
            probes: of.probes,
            decoys: of.decoys,
            recall: of.recall,
            server_learns_queries: of.server_learns_queries,
            oblivious: of.oblivious,
        }),
        scheme: named(&given.scheme)?,
        bits: given.bits,
        network: given.network.map(network),
        center: given.center,
        sparse: given.sparse.map(sparse),
        embedding_function: given.embedding_function,
        ..Choices::new(given.name, given.dimension)
    })
}

/// Rows to add or to change, as a dictionary has them: metadata as JSON text.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct PyRecords<'py> {
    ids: Vec<PyId>,
    embeddings: Option<PyReadonlyArray2<'py, f32>>,
    metadatas: Option<Vec<Option<String>>>,
    documents: Option<Vec<Option<String>>>,
    sparse: Option<Vec<Option<Pairs>>>,
    skip_zeros: bool,
}

impl PyRecords<'_> {
    pub fn read(self, dimension: usize) -> PyResult<Records> {
        let embeddings = match &self.embeddings {
            Some(rows) => arrays::rows(rows, dimension)?.to_vec(),
            None => Vec::new(),
        };
        Ok(Records {
            ids: ids::unwrap(self.ids),
            embeddings,
            metadatas: self.metadatas.unwrap_or_default(),
            documents: self.documents.unwrap_or_default(),
            sparse: self
                .sparse
                .unwrap_or_default()
                .into_iter()
                .map(|one| one.map(vector))
                .collect(),
            on_zero: if self.skip_zeros { OnZero::Skip } else { OnZero::Refuse },
        })
    }
}

/// Which rows, as a dictionary has them: filters as JSON text.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct PySelection {
    ids: Option<Vec<PyId>>,
    r#where: Option<String>,
    where_document: Option<String>,
}

impl PySelection {
    pub fn read(self) -> Selection {
        Selection {
            ids: self.ids.map(ids::unwrap),
            filter: self.r#where,
            document: self.where_document,
        }
    }
}

/// What is asked of words beside vectors, as a dictionary has it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct PyHybrid {
    texts: Option<Vec<String>>,
    vectors: Option<Vec<Pairs>>,
    k: Option<f64>,
    alpha: Option<f64>,
    window: usize,
    idf: bool,
}

impl PyHybrid {
    pub fn read(self) -> Hybrid {
        let fusion = match (self.k, self.alpha) {
            (Some(k), _) => Fusion::Ranks { k },
            (None, Some(alpha)) => Fusion::Weighted { alpha },
            (None, None) => Fusion::Words,
        };
        let asked = match self.vectors {
            Some(vectors) => Asked::Vectors(vectors.into_iter().map(vector).collect()),
            None => Asked::Texts(self.texts.unwrap_or_default()),
        };
        Hybrid { asked, fusion, window: self.window, idf: self.idf }
    }
}

/// Which parts of rows.
pub fn parts((records, embeddings): (bool, bool), fetch: &str) -> PyResult<Parts> {
    Ok(Parts { records, embeddings, fetch: self::fetch(fetch)? })
}

/// How rows are read.
pub fn fetch(name: &str) -> PyResult<Fetch> {
    match name {
        "auto" => Ok(Fetch::Auto),
        "private" => Ok(Fetch::Private),
        "rows" => Ok(Fetch::Rows),
        "segments" => Ok(Fetch::Segments),
        "collection" => Ok(Fetch::Collection),
        name => Err(InvalidInput::new_err(format!(
            "fetch must be 'auto', 'private', 'rows', 'segments' or 'collection', got {name:?}."
        ))),
    }
}

/// Who will read a result.
pub fn audience(name: Option<&str>) -> PyResult<Option<Audience>> {
    match name {
        None => Ok(None),
        Some("owner") => Ok(Some(Audience::Owner)),
        Some("others") => Ok(Some(Audience::Others)),
        Some(name) => Err(InvalidInput::new_err(format!(
            "audience must be 'owner', 'others' or None, got {name:?}."
        ))),
    }
}

/// Ids as Python has them.
pub fn names<'py>(
    py: Python<'py>,
    ids: impl IntoIterator<Item = Id>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    ids.into_iter().map(|id| ids::to_python(py, &id)).collect()
}
