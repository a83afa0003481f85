//! What Python passes: choices, rows, selections, questions.

use std::str::FromStr;

use ciphervec_client::{
    Asked, Audience, Bm25, Choices, Clusters, Fetch, Fusion, Hybrid, Muvera, MuveraOptions, OnZero,
    Parts, Records, Selection, Sparse, SparseVector, Tokens,
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

/// Width, k_sim, repetitions, d_proj, dimension, seed.
pub type PyMuvera = (u32, u32, u32, u32, u32, Option<u64>);

/// How many vectors become one, with what is left out filled in.
#[pyfunction]
#[pyo3(signature = (width, k_sim = None, repetitions = None, d_proj = None, dimension = None, seed = None))]
pub fn check_multi(
    width: u32,
    k_sim: Option<u32>,
    repetitions: Option<u32>,
    d_proj: Option<u32>,
    dimension: Option<u32>,
    seed: Option<u64>,
) -> PyResult<PyMuvera> {
    let options = MuveraOptions { k_sim, repetitions, d_proj, dimension, seed };
    Muvera::new(width, options).map(told).map_err(Raise::raise)
}

/// That each matrix is what a collection takes whose vectors have `width` numbers.
#[pyfunction]
pub fn check_tokens(multi: PyTokens<'_>, width: usize, what: &str) -> PyResult<()> {
    ciphervec_client::check_tokens(&tokens(&multi), width, what).map_err(Raise::raise)
}

/// As Python has it.
pub fn told(of: Muvera) -> PyMuvera {
    (of.width, of.k_sim, of.repetitions, of.d_proj, of.dimension, of.seed)
}

fn muvera((width, k_sim, repetitions, d_proj, dimension, seed): PyMuvera) -> Muvera {
    Muvera { width, k_sim, repetitions, d_proj, dimension, seed }
}

/// Matrices, a row's or a query's each.
pub type PyTokens<'py> = Vec<PyReadonlyArray2<'py, f32>>;

/// As they are given.
pub fn tokens(given: &PyTokens<'_>) -> Vec<Tokens> {
    let one = |matrix: &PyReadonlyArray2<'_, f32>| {
        let numbers = matrix.as_array();
        Tokens { width: numbers.ncols(), values: numbers.iter().copied().collect() }
    };
    given.iter().map(one).collect()
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
pub type Pairs = (Vec<u32>, Vec<f32>);

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
    multi: Option<PyMuvera>,
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
        multi: given.multi.map(muvera),
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
    multi: Option<PyTokens<'py>>,
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
            multi: self.multi.as_ref().map(tokens).unwrap_or_default(),
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

/// Whether metadata and documents are read, vectors, matrices, sparse vectors.
pub type PyParts = (bool, bool, bool, bool);

/// Which parts of rows.
pub fn parts((records, embeddings, multi, sparse): PyParts, fetch: &str) -> PyResult<Parts> {
    Ok(Parts { records, embeddings, multi, sparse, fetch: self::fetch(fetch)? })
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
