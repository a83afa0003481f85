//! One collection, as the core has it, for the Python package.

use std::cell::RefCell;
use std::sync::{Arc, PoisonError, RwLock};

use ciphervec_client::{
    Bm25, Clusters, Collection, Found, GetResult, Host, Known, QueryRequest, Row, Sparse,
    SparseVector, Tokens, Unknown, Wanted,
};
use ciphervec_owner::SegmentId;
use numpy::{PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays;
use crate::client::answers::{Answered, PyQuery, answered, segments};
use crate::client::facts;
use crate::client::host::{PyCallHost, run};
use crate::client::values::{
    Pairs, PyHybrid, PyMuvera, PyParts, PyRecords, PySelection, PySparse, PyTokens, audience,
    names, network, parts, sparse, tokens, told,
};
use crate::errors::CiphervecError;
use crate::ids::{self, PyId};
use crate::keys::{PyEvaluationKeys, PyKeys};
use crate::spec::PyIndexSpec;

/// One collection. It may be asked from several threads.
#[pyclass(name = "Collection", module = "ciphervec._native", frozen)]
pub struct PyCollection {
    /// None once it is closed: calls that go on then hold what they use of it.
    open: RwLock<Option<Arc<Collection>>>,
    dimension: usize,
}

thread_local! {
    /// The collections that this thread is in a call of.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A call of a collection, which no other on the same thread may be within: it would wait for itself.
struct Entered(usize);

impl Entered {
    fn new(collection: usize) -> PyResult<Self> {
        INSIDE.with_borrow_mut(|inside| {
            if inside.contains(&collection) {
                let says = "what is called back during a collection's call can't call the same collection.";
                return Err(CiphervecError::new_err(says));
            }
            inside.push(collection);
            Ok(Entered(collection))
        })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|inside| inside.retain(|one| *one != self.0));
    }
}

/// Ids, metadata as JSON text, documents, vectors, matrices, sparse vectors: an entry a row.
type Rows<'py> = (
    Vec<Bound<'py, PyAny>>,
    Option<Vec<Option<String>>>,
    Option<Vec<Option<String>>>,
    Option<Bound<'py, PyArray2<f32>>>,
    Option<Vec<Bound<'py, PyArray2<f32>>>>,
    Option<Vec<Option<Pairs>>>,
);
/// The same of one query's hits, with their distances and scores.
type Hits<'py> = (Rows<'py>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);
/// Hits of each query, whether they carry noise of the key, whether all was checked, the noise added, and bounds by MaxSim.
type Answer<'py> = (Vec<Hits<'py>>, bool, bool, Option<f64>, Vec<f64>);
/// Count, probes and decoys of clusters; recall; whether the server learns queries, and whether it learns no clusters.
type Routing = (Option<u32>, Option<u32>, Option<u32>, f64, bool, bool);

impl PyCollection {
    pub fn new(collection: Collection) -> Self {
        let dimension = collection.spec().dimension();
        Self { open: RwLock::new(Some(Arc::new(collection))), dimension }
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    pub(super) fn run<T: Send>(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        work: impl AsyncFnOnce(&Collection, &dyn Host) -> ciphervec_client::Result<T> + Send,
    ) -> PyResult<T> {
        let open = self.open()?;
        let _entered = Entered::new(Arc::as_ptr(&open) as usize)?;
        run(py, host, async |host| work(&open, host).await)
    }

    fn open(&self) -> PyResult<Arc<Collection>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let closed =
            || CiphervecError::new_err("the collection was closed; get it again from the client.");
        open.clone().ok_or_else(closed)
    }
}

fn listed<'py>(
    py: Python<'py>,
    rows: Vec<Row>,
    (records, embeddings, multi, sparse): PyParts,
    dimension: usize,
) -> PyResult<Rows<'py>> {
    let count = rows.len();
    let (mut known, mut metadatas, mut documents) =
        (Vec::with_capacity(count), Vec::new(), Vec::new());
    let mut vectors = Vec::with_capacity(if embeddings { count * dimension } else { 0 });
    let (mut matrices, mut weights) = (Vec::new(), Vec::new());
    for Row { id, metadata, document, embedding, tokens, sparse } in rows {
        known.push(ids::to_python(py, &id)?);
        metadatas.push(metadata);
        documents.push(document);
        vectors.extend(embedding.unwrap_or_default());
        if let Some(Tokens { width, values }) = tokens {
            matrices.push(arrays::matrix(py, values, width)?);
        }
        weights.push(sparse.map(|SparseVector { indices, values }| (indices, values)));
    }
    let vectors = embeddings.then(|| arrays::matrix(py, vectors, dimension)).transpose()?;
    Ok((
        known,
        records.then_some(metadatas),
        records.then_some(documents),
        vectors,
        multi.then_some(matrices),
        sparse.then_some(weights),
    ))
}

#[pymethods]
impl PyCollection {
    /// Lets go of it, and of its lock once the calls that are under way have ended.
    fn close(&self) {
        self.open.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    #[getter]
    fn spec(&self) -> PyResult<PyIndexSpec> {
        Ok(facts::spec(self.open()?.spec()))
    }

    /// Filterable fields, and whether vectors are kept as they were put in.
    #[getter]
    fn settings(&self) -> PyResult<(Vec<String>, bool)> {
        Ok(self.open()?.settings())
    }

    /// Count, probes, decoys, recall, whether the server learns queries, and whether it learns no clusters; None where nothing is routed.
    #[getter]
    fn routing(&self) -> PyResult<Option<Routing>> {
        let open = self.open()?;
        let told = |of: &Clusters| {
            let Clusters { count, probes, decoys, recall, server_learns_queries, oblivious } = *of;
            (count, probes, decoys, recall, server_learns_queries, oblivious)
        };
        Ok(open.routing().map(told))
    }

    /// Width, k_sim, repetitions, d_proj, dimension, seed; None where rows have one vector.
    #[getter]
    fn multi(&self) -> PyResult<Option<PyMuvera>> {
        Ok(self.open()?.multi().map(told))
    }

    /// Within a tuple the k1 and b of BM25, or None for sparse vectors; None where rows are ranked by neither.
    #[getter]
    fn sparse(&self) -> PyResult<Option<PySparse>> {
        Ok(self.open()?.sparse().map(|sparse| match sparse {
            Sparse::Bm25(Bm25 { k1, b }) => (Some((k1, b)),),
            Sparse::Vectors => (None,),
        }))
    }

    fn add<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        rows: PyRecords<'py>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let rows = rows.read(self.dimension())?;
        names(py, self.run(py, host, async |one, host| one.add(host, rows).await)?)
    }

    fn upsert<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        rows: PyRecords<'py>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let rows = rows.read(self.dimension())?;
        names(py, self.run(py, host, async |one, host| one.upsert(host, rows).await)?)
    }

    /// `there` marks the rows whose vector is given, None: all or none of them.
    fn update(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        rows: PyRecords<'_>,
        there: Option<Vec<bool>>,
        removed: Vec<String>,
    ) -> PyResult<()> {
        let rows = rows.read(self.dimension())?;
        self.run(py, host, async |one, host| one.update(host, rows, there, &removed).await)
    }

    fn merge(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        rows: PyRecords<'_>,
        there: Option<Vec<bool>>,
        keep: bool,
        skip: bool,
    ) -> PyResult<usize> {
        let rows = rows.read(self.dimension())?;
        let known = if keep { Known::Keep } else { Known::Merge };
        let unknown = if skip { Unknown::Skip } else { Unknown::Add };
        self.run(py, host, async |one, host| one.merge(host, rows, there, known, unknown).await)
    }

    fn delete(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        which: PySelection,
        missing_ok: bool,
    ) -> PyResult<usize> {
        let which = which.read();
        self.run(py, host, async |one, host| one.delete(host, &which, missing_ok).await)
    }

    /// Rows, and whether vectors among them carry noise of the key.
    #[pyo3(signature = (host, which, include, offset = 0, limit = None, audience = None, fetch = "auto"))]
    #[expect(clippy::too_many_arguments, reason = "they are the arguments of one Python call")]
    fn get<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        which: PySelection,
        include: PyParts,
        offset: usize,
        limit: Option<usize>,
        audience: Option<&str>,
        fetch: &str,
    ) -> PyResult<(Rows<'py>, bool)> {
        let (which, parts, readers) =
            (which.read(), parts(include, fetch)?, self::audience(audience)?);
        let get = async |one: &Collection, host: &dyn Host| {
            one.get(host, &which, parts, offset, limit, readers).await
        };
        let GetResult { rows, owners_only } = self.run(py, host, get)?;
        Ok((listed(py, rows, include, self.dimension())?, owners_only))
    }

    /// The hits of each query, whether their scores carry noise of the key, whether all was checked, the noise that was added, and the
    /// bound of each query's scores by MaxSim.
    #[pyo3(signature = (host, embeddings, n_results, within, among, include, audience = None, flooding = None, skip_quarantined = false, fetch = "auto", hybrid = None, multi = None, candidates = None))]
    #[expect(clippy::too_many_arguments, reason = "they are the arguments of one Python call")]
    fn query<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        embeddings: PyReadonlyArray2<'py, f32>,
        n_results: Option<usize>,
        within: Option<f64>,
        among: PySelection,
        include: PyParts,
        audience: Option<&str>,
        flooding: Option<f64>,
        skip_quarantined: bool,
        fetch: &str,
        hybrid: Option<PyHybrid>,
        multi: Option<PyTokens<'py>>,
        candidates: Option<usize>,
    ) -> PyResult<Answer<'py>> {
        let request = QueryRequest {
            embeddings: arrays::rows(&embeddings, self.dimension())?.to_vec(),
            multi: multi.as_ref().map(tokens).unwrap_or_default(),
            candidates,
            n_results,
            hybrid: hybrid.map(PyHybrid::read),
            within,
            among: among.read(),
            parts: parts(include, fetch)?,
            audience: self::audience(audience)?,
            flooding,
            skip_quarantined,
        };
        let found = self.run(py, host, async |one, host| one.query(host, request).await)?;
        let hits = found.hits.into_iter().map(|hits| {
            let (mut rows, mut distances, mut scores) = (Vec::new(), Vec::new(), Vec::new());
            for Found { row, distance, score } in hits {
                rows.push(row);
                distances.push(distance);
                scores.push(score);
            }
            let rows = listed(py, rows, include, self.dimension())?;
            Ok((rows, PyArray1::from_vec(py, distances), PyArray1::from_vec(py, scores)))
        });
        let hits = hits.collect::<PyResult<_>>()?;
        Ok((hits, found.owners_only, found.checked, found.flooding, found.bounds))
    }

    /// Queries under the key that they would be asked under, counted.
    fn make_query(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        rows: PyReadonlyArray2<'_, f32>,
    ) -> PyResult<PyQuery> {
        let rows = arrays::rows(&rows, self.dimension())?.to_vec();
        self.run(py, host, async |one, host| one.make_query(host, rows).await).map(PyQuery)
    }

    /// Plain queries that somebody else made.
    fn read_query(&self, py: Python<'_>, host: &PyCallHost, data: &[u8]) -> PyResult<PyQuery> {
        self.run(py, host, async |one, host| one.read_query(host, data).await).map(PyQuery)
    }

    /// The whole answer of the server's half to the bytes of queries.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        data: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let answer = self.run(py, host, async |one, host| one.evaluate(host, data).await)?;
        Ok(PyBytes::new(py, &answer))
    }

    /// Raises TamperedAnswer, or MismatchedAnswer where somebody else made the query. A count of 1 with `within` takes as long however
    /// many rows are that near.
    #[pyo3(signature = (host, query, answer, count = None, within = None, among = None))]
    #[expect(clippy::too_many_arguments, reason = "they are the arguments of one Python call")]
    fn open_answer<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        query: &PyQuery,
        answer: &[u8],
        count: Option<usize>,
        within: Option<f64>,
        among: Option<Vec<PyId>>,
    ) -> PyResult<Answered<'py>> {
        let wanted = Wanted { count, within, among: among.map(ids::unwrap) };
        let open = async |one: &Collection, host: &dyn Host| {
            one.open_answer(host, &query.0, answer, &wanted).await
        };
        answered(py, self.run(py, host, open)?)
    }

    /// Puts segments into quarantine, by the bytes of their ids.
    fn hold(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        segments: Vec<[u8; 16]>,
        reason: &str,
    ) -> PyResult<()> {
        let held: Vec<_> = segments.into_iter().map(SegmentId).collect();
        self.run(py, host, async |one, host| one.hold(host, &held, reason).await)
    }

    fn quarantined<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        Ok(segments(py, self.run(py, host, async |one, host| one.quarantined(host).await)?))
    }

    /// Segments that nothing is checked about, with the writers' names of those that are theirs.
    fn unchecked<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, Option<String>)>> {
        let found = self.run(py, host, async |one, host| one.unchecked(host).await)?;
        Ok(found.into_iter().map(|(id, writer)| (PyBytes::new(py, &id.0), writer)).collect())
    }

    /// Deviation; queries of all rows in all and left; rows an epoch in all and left.
    fn flooding_plan(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        flooding: f64,
    ) -> PyResult<(f64, u64, u64, u64, u64)> {
        let plan = self.run(py, host, async |one, host| one.flooding_plan(host, flooding).await)?;
        let left = (plan.queries, plan.queries_left, plan.rows_an_epoch, plan.rows_left);
        Ok((plan.deviation, left.0, left.1, left.2, left.3))
    }

    fn prefetch(&self, py: Python<'_>, host: &PyCallHost, queries: usize) -> PyResult<usize> {
        self.run(py, host, async |one, host| one.prefetch(host, queries).await)
    }

    /// What a private fetch of metadata and documents is like.
    fn private_fetch<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
    ) -> PyResult<Bound<'py, PyDict>> {
        facts::fetched(py, self.run(py, host, async |one, host| one.private_fetch(host).await)?)
    }

    fn resume_private_fetch(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<()> {
        self.run(py, host, async |one, host| one.resume_private_fetch(host).await)
    }

    fn recluster<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        questions: Option<PyReadonlyArray2<'py, f32>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let questions = match &questions {
            Some(rows) => Some(arrays::rows(rows, self.dimension())?.to_vec()),
            None => None,
        };
        let made = self.run(py, host, async |one, host| one.recluster(host, questions).await)?;
        facts::clustered(py, &made)
    }

    fn count(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<usize> {
        self.run(py, host, async |one, host| one.count(host).await)
    }

    fn has(&self, py: Python<'_>, host: &PyCallHost, ids: Vec<PyId>) -> PyResult<Vec<bool>> {
        let wanted = ids::unwrap(ids);
        self.run(py, host, async |one, host| one.has(host, &wanted).await)
    }

    /// In the order of insertion.
    fn ids<'py>(&self, py: Python<'py>, host: &PyCallHost) -> PyResult<Vec<Bound<'py, PyAny>>> {
        names(py, self.run(py, host, async |one, host| one.ids(host).await)?)
    }

    /// Those of these ids that are there, each once, in the order of insertion.
    fn in_order<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        ids: Vec<PyId>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let wanted = ids::unwrap(ids);
        names(py, self.run(py, host, async |one, host| one.in_order(host, &wanted).await)?)
    }

    /// What rows are taken less, of length 0 where that is nothing; whether it was given.
    fn center<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
    ) -> PyResult<(Bound<'py, PyArray1<f32>>, bool)> {
        let (center, given) = self.run(py, host, async |one, host| one.center(host).await)?;
        Ok((PyArray1::from_vec(py, center), given))
    }

    /// What a server needs under the collection's own epoch; the public key, under schemes with a key pair.
    fn evaluation(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<PyEvaluationKeys> {
        let (bytes, epoch, owner) =
            self.run(py, host, async |one, host| one.evaluation(host).await)?;
        PyEvaluationKeys::of_collection(bytes, epoch, owner)
    }

    /// Whether its owner made the card with these bytes.
    fn knows_card(&self, py: Python<'_>, host: &PyCallHost, card: &[u8]) -> PyResult<bool> {
        self.run(py, host, async |one, host| one.knows_card(host, card).await)
    }

    /// The commit that is known here; and the newer one that a reader of a folder is behind of.
    fn version(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<(u64, Option<u64>)> {
        self.run(py, host, async |one, host| one.version(host).await)
    }

    fn refresh(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<()> {
        self.run(py, host, async |one, host| one.refresh(host).await)
    }

    fn checkpoint(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<String> {
        self.run(py, host, async |one, host| one.checkpoint(host).await)
    }

    fn expect(&self, py: Python<'_>, host: &PyCallHost, checkpoint: &str) -> PyResult<()> {
        self.run(py, host, async |one, host| one.expect(host, checkpoint).await)
    }

    fn release(&self, py: Python<'_>, host: &PyCallHost, segment: &str) -> PyResult<()> {
        self.run(py, host, async |one, host| one.release(host, segment).await)
    }

    /// The bytes of a card, and its fingerprint.
    fn writer_card<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        writer: &str,
    ) -> PyResult<(Bound<'py, PyBytes>, String)> {
        let card = self.run(py, host, async |one, host| one.writer_card(host, writer).await)?;
        Ok((PyBytes::new(py, &card.0), card.1))
    }

    /// Files, bytes, files that nothing refers to.
    fn verify(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<(u64, u64, u64)> {
        let found = self.run(py, host, async |one, host| one.verify(host).await)?;
        Ok((found.files, found.bytes, found.strays))
    }

    fn optimize(&self, py: Python<'_>, host: &PyCallHost, reseal: bool) -> PyResult<()> {
        self.run(py, host, async |one, host| one.optimize(host, reseal).await)
    }

    /// `over` is bytes a second and seconds there and back.
    fn pack_for(&self, py: Python<'_>, host: &PyCallHost, over: (f64, f64)) -> PyResult<()> {
        self.run(py, host, async |one, host| one.pack_for(host, network(over)).await)
    }

    fn upgrade(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<bool> {
        self.run(py, host, async |one, host| one.upgrade(host).await)
    }

    fn extend_filterable(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        fields: Vec<String>,
    ) -> PyResult<()> {
        self.run(py, host, async |one, host| one.extend_filterable(host, &fields).await)
    }

    /// `function` as JSON text; None takes it away.
    fn set_embedding_function(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        function: Option<&str>,
    ) -> PyResult<()> {
        self.run(py, host, async |one, host| one.set_embedding_function(host, function).await)
    }

    /// `sparse` as of the choices of a new collection.
    fn set_sparse(&self, py: Python<'_>, host: &PyCallHost, sparse: PySparse) -> PyResult<()> {
        let sparse = self::sparse(sparse);
        self.run(py, host, async |one, host| one.set_sparse(host, sparse).await)
    }

    fn adopt(&self, py: Python<'_>, host: &PyCallHost, take_over: bool) -> PyResult<usize> {
        self.run(py, host, async |one, host| one.adopt(host, take_over).await)
    }

    fn discard(&self, py: Python<'_>, host: &PyCallHost, segments: Vec<String>) -> PyResult<usize> {
        self.run(py, host, async |one, host| one.discard(host, &segments).await)
    }

    fn rotate_keys(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        keys: &PyKeys,
        overlap: bool,
    ) -> PyResult<()> {
        let keys = Arc::clone(&keys.0);
        self.run(py, host, async |one, host| one.rotate_keys(host, &keys, overlap).await)
    }

    fn rotate_query_key(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<()> {
        self.run(py, host, async |one, host| one.rotate_query_key(host).await)
    }

    fn explain<'py>(&self, py: Python<'py>, host: &PyCallHost) -> PyResult<Bound<'py, PyDict>> {
        facts::explained(py, &self.run(py, host, async |one, host| one.explain(host).await)?)
    }

    /// `over` as of `pack_for`: for which packing is told.
    fn info<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        over: Option<(f64, f64)>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let over = over.map(network);
        facts::described(py, self.run(py, host, async |one, host| one.info(host, over).await)?)
    }
}
