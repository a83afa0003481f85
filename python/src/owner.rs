//! Rows enter, sealed segments and queries leave; answers enter, ids and scores leave. Owner only.

use std::sync::{Arc, Mutex, PoisonError};

use ciphervec_he_secret::wire::{self, Kind};
use ciphervec_owner::protect::filter::FilterTag;
use ciphervec_owner::protect::records::{self, Place, seal_records};
use ciphervec_owner::search::{
    AnswerFormat, Expected, Flood, Hit, OpenOptions, Opened, OpenedSidecar, Owner, OwnerTimings,
    Query, QueryOptions, Retrieval, RotationState, SealedSidecar, SegmentRootKey, Standing,
};
use ciphervec_owner::{Network, SegmentId};
use numpy::{PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::errors::{CorruptData, InvalidInput, Raise};
use crate::ids::{self, PyId};
use crate::keys::{PyEvaluationKeys, PyKeys};
use crate::records::PyRecordBatch;
use crate::segment::{self, PySealedSegment};
use crate::segment_directory::PySegmentDirectory;
use crate::spec::PyIndexSpec;
use crate::state::{self, Facts};
use crate::tokens::{PyTokenPool, PyTokenRequest};
use crate::writer::PyWriterCard;
use crate::{arrays, runtime};

type Answer<'py> = (Bound<'py, PyList>, Bound<'py, PyArray1<f64>>);
/// Every query's, whether they depend on rows and queries alone, whether all was checked, and which segments of writers were passed
/// over.
pub type Answers<'py> = (Vec<Answer<'py>>, bool, bool, Vec<Bound<'py, PyBytes>>);

/// The sidecar of one segment, opened: a directory takes it in once.
#[pyclass(name = "OpenedSidecar", module = "ciphervec._native", frozen)]
pub struct PyOpenedSidecar(Mutex<Option<ciphervec_owner::Result<OpenedSidecar>>>);

impl PyOpenedSidecar {
    fn take(&self) -> PyResult<OpenedSidecar> {
        let opened = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let opened =
            opened.ok_or_else(|| InvalidInput::new_err("this sidecar was taken in before"))?;
        opened.map_err(Raise::raise)
    }
}

/// The half that holds the keys.
#[pyclass(name = "Owner", module = "ciphervec._native", frozen)]
pub struct PyOwner(pub Owner);

impl PyOwner {
    /// The keyed hash of a filterable field's value.
    pub fn tag(&self, field: &str, value: &[u8]) -> FilterTag {
        self.0.filter_tag(field, value)
    }
}

/// The key that one segment's records are sealed under: the directory knows it where it is not the owner's own.
fn root_of(
    directory: Option<&PySegmentDirectory>,
    segment: SegmentId,
) -> Option<Arc<SegmentRootKey>> {
    directory.and_then(|directory| directory.read().root(segment).map(Arc::clone))
}

/// What rows are packed for; `network` is bytes a second and seconds there and back.
fn expected_rows(rows: usize, network: Option<(f64, f64)>) -> Expected {
    let network = network.map_or_else(Network::default, |(bytes_per_second, round_trip)| Network {
        bytes_per_second,
        round_trip,
    });
    Expected { rows, network }
}

#[pymethods]
impl PyOwner {
    #[new]
    #[pyo3(signature = (keys, spec, mask_seed = None, previous = None))]
    fn new(
        py: Python<'_>,
        keys: &PyKeys,
        spec: &PyIndexSpec,
        mask_seed: Option<[u8; 32]>,
        previous: Option<&PyKeys>,
    ) -> PyResult<Self> {
        let custody = RotationState { mask_seed, previous: previous.map(|keys| &*keys.0) };
        py.detach(|| runtime::run(|| Owner::with_rotation(&keys.0, spec.0.clone(), &custody)))
            .map(Self)
            .map_err(Raise::raise)
    }

    /// The seed of the public masks, which outlives the keys.
    #[getter]
    fn mask_seed<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.mask_seed())
    }

    /// What a server needs to answer encrypted queries of `epoch`; empty where queries are plain.
    fn evaluation(&self, py: Python<'_>, epoch: u32) -> PyResult<PyEvaluationKeys> {
        let made = py.detach(|| runtime::run(|| self.0.evaluation(epoch))).map_err(Raise::raise)?;
        let bytes = made.map(|keys| keys.to_bytes()).unwrap_or_default();
        Ok(PyEvaluationKeys::new(bytes, epoch, self.key_id()))
    }

    /// Takes in the evaluation keys that a server holds, where they are not those of `evaluation`.
    fn hold_evaluation(&self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        py.detach(|| runtime::run(|| self.0.hold_evaluation(data))).map_err(Raise::raise)
    }

    /// A card for the writer of this name, who takes `centre` off the rows.
    #[pyo3(signature = (writer, filterable, centre = Vec::new()))]
    fn writer_card(
        &self,
        py: Python<'_>,
        writer: &str,
        filterable: Vec<String>,
        centre: Vec<f32>,
    ) -> PyResult<PyWriterCard> {
        let make = || self.0.writer_card_around(writer, &filterable, &centre);
        let card = runtime::detached(py, make);
        card.map(PyWriterCard).map_err(Raise::raise)
    }

    /// Whether this owner made the card as it is.
    fn knows_card(&self, card: &PyWriterCard) -> bool {
        self.0.knows_card(&card.0)
    }

    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// Makes the key pair of an additively homomorphic scheme. Once.
    fn generate_key_pair(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| runtime::run(|| self.0.generate_key_pair())).map_err(Raise::raise)
    }

    /// Takes in what `sealed_key_pair` gave, instead.
    fn open_key_pair(&self, py: Python<'_>, sealed: &[u8]) -> PyResult<()> {
        py.detach(|| runtime::run(|| self.0.open_key_pair(sealed))).map_err(Raise::raise)
    }

    /// The pair, encrypted under the owner's key and bound to the index.
    fn sealed_key_pair<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let sealed = runtime::detached(py, || self.0.sealed_key_pair()).map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &sealed))
    }

    /// The public half, which is what the server needs.
    fn public_key(&self) -> PyResult<PyEvaluationKeys> {
        let bytes = self.0.public_key().map_err(Raise::raise)?;
        let (header, _) = wire::open(Kind::PublicKey, &bytes).map_err(Raise::raise)?;
        Ok(PyEvaluationKeys::of_public_key(bytes, header.key.to_string()))
    }

    /// Seals rows under a new nonce. `expected` is how many the index will hold, for the packing; unset, these.
    /// `network` is what answers travel over: bytes a second, seconds there and back.
    /// The rows are taken less `centre`, which may be empty.
    #[pyo3(signature = (vectors, ids, expected = None, network = None, centre = Vec::new()))]
    fn seal(
        &self,
        py: Python<'_>,
        vectors: PyReadonlyArray2<'_, f32>,
        ids: Vec<PyId>,
        expected: Option<usize>,
        network: Option<(f64, f64)>,
        centre: Vec<f32>,
    ) -> PyResult<PySealedSegment> {
        let rows = arrays::rows(&vectors, self.0.spec().dimension())?;
        let names = ids::unwrap(ids);
        let expected = expected_rows(expected.unwrap_or(names.len()), network);
        let sealed =
            py.detach(|| runtime::run(|| self.0.seal_around(rows, &names, &expected, &centre)));
        sealed.map(PySealedSegment).map_err(Raise::raise)
    }

    /// How most rows of an index of `expected` are packed: level, bytes of an answer, seconds that it takes; None in modes
    /// without a choice.
    fn packing(
        &self,
        expected: usize,
        network: Option<(f64, f64)>,
    ) -> PyResult<Option<(u8, usize, f64)>> {
        let choice = self.0.packing(&expected_rows(expected, network)).map_err(Raise::raise)?;
        Ok(choice.map(|choice| (choice.level, choice.answer_len, choice.transfer)))
    }

    /// Opens sidecars on all threads, each of a segment, with the key that it is wrapped under, if a writer sealed it, and the
    /// rows that it is listed with, if it is.
    /// What keeps one from opening is raised when it is taken in.
    fn open_sidecars(
        &self,
        py: Python<'_>,
        stored: Vec<(PyBackedBytes, PyBackedBytes, Option<PyBackedBytes>, Option<u32>)>,
    ) -> PyResult<Vec<PyOpenedSidecar>> {
        let parts = stored.iter().map(|(id, sidecar, wrap, rows)| {
            let (segment, wrap) = (segment::id(id)?, wrap.as_deref());
            Ok(SealedSidecar { segment, sidecar, wrap, rows: *rows })
        });
        let parts: Vec<_> = parts.collect::<PyResult<_>>()?;
        let opened = py.detach(|| runtime::run(|| self.0.open_sidecars(&parts)));
        Ok(opened.into_iter().map(|one| PyOpenedSidecar(Mutex::new(Some(one)))).collect())
    }

    /// Takes a segment into the directory, with what its sidecar says. `standing` says what becomes of ids that are known: `new`
    /// (an error where the owner sealed both), `stored` (the later row counts), `appended` (the authenticated row counts). Rows in
    /// `aside` don't count.
    #[pyo3(signature = (directory, opened, deleted_rows = Vec::new(), standing = "new", aside = Vec::new()))]
    fn add_to(
        &self,
        py: Python<'_>,
        directory: &PySegmentDirectory,
        opened: &PyOpenedSidecar,
        deleted_rows: Vec<u32>,
        standing: &str,
        aside: Vec<u32>,
    ) -> PyResult<()> {
        let opened = opened.take()?;
        let standing = match (standing, opened.is_written()) {
            ("new", false) => Standing::New,
            ("appended", _) => Standing::Appended,
            _ => Standing::Stored,
        };
        let attached = py.detach(|| {
            let mut guard = directory.write();
            let known = &mut *guard;
            runtime::run(|| known.attach_opened(&self.0, opened, (&deleted_rows, &aside), standing))
        });
        attached.map_err(Raise::raise)
    }

    /// The rows of a segment, or those asked for, at unit length, as far as the seal keeps them.
    #[pyo3(signature = (segment, directory, rows = None))]
    fn unseal<'py>(
        &self,
        py: Python<'py>,
        segment: &[u8],
        directory: &PySegmentDirectory,
        rows: Option<Vec<usize>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let rows = py.detach(|| {
            let guard = directory.read();
            let known = &*guard;
            runtime::run(|| self.0.unseal_rows(segment, rows.as_deref(), known))
        });
        let rows = rows.map_err(Raise::raise)?;
        arrays::matrix(py, rows, self.0.spec().dimension())
    }

    /// The segments that these are of.
    fn unchecked<'py>(
        &self,
        py: Python<'py>,
        directory: &PySegmentDirectory,
    ) -> Vec<Bound<'py, PyBytes>> {
        directory.read().unchecked(&self.0).map(|id| PyBytes::new(py, &id.0)).collect()
    }

    /// Seals queries for the segments that the directory knows, or for those of them in `segments`. `tags` restrict the answer on
    /// the server. `format` is that of the answer: "first", which every server knows, or "short". Where `tokens` has one for each row they are taken out and used; not with `segments`.
    #[pyo3(signature = (vectors, directory, epoch = 0, tags = Vec::new(), segments = None, format = "short", tokens = None, centre = Vec::new()))]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the keyword arguments of one Python call"
    )]
    fn query(
        &self,
        py: Python<'_>,
        vectors: PyReadonlyArray2<'_, f32>,
        directory: &PySegmentDirectory,
        epoch: u32,
        tags: Vec<[u8; 16]>,
        segments: Option<Vec<[u8; 16]>>,
        format: &str,
        tokens: Option<&PyTokenPool>,
        centre: Vec<f32>,
    ) -> PyResult<PySealedQuery> {
        let format = answer_format(format);
        let segments = segments.map(|ids| ids.into_iter().map(SegmentId).collect::<Vec<_>>());
        let rows = arrays::rows(&vectors, self.0.spec().dimension())?;
        let query = py.detach(|| {
            let guard = directory.read();
            let known = &*guard;
            let (tags, segments, centre) = (&*tags, segments.as_deref(), &*centre);
            let count = rows.len() / self.0.spec().dimension();
            let tokens = match tokens {
                Some(pool) if segments.is_none() => {
                    self.0.take_tokens(&pool.0, count, known, epoch, format)?
                }
                _ => None,
            };
            let options = QueryOptions { epoch, tags, segments, format, centre, tokens };
            runtime::run(|| self.0.query(rows, known, options))
        });
        let query = query.map_err(Raise::raise)?;
        Ok(PySealedQuery { query, opened: Mutex::new(None) })
    }

    /// Takes in a plain query that somebody else made, and checks that its probes are unit vectors.
    fn read_query(&self, py: Python<'_>, query: &[u8]) -> PyResult<PySealedQuery> {
        let query =
            py.detach(|| runtime::run(|| self.0.read_query(query))).map_err(Raise::raise)?;
        Ok(PySealedQuery { query, opened: Mutex::new(None) })
    }

    /// Does ahead what opening an answer to the query takes beside the answer itself, while a server works on it.
    fn prepare(
        &self,
        py: Python<'_>,
        query: &PySealedQuery,
        directory: &PySegmentDirectory,
    ) -> PyResult<()> {
        let levels = directory.read().levels(query.query.segments());
        runtime::detached(py, || self.0.prepare(&query.query, &levels)).map_err(Raise::raise)
    }

    /// Decrypts and ranks an answer: ids and scores per query, the `count` closest or those within `threshold`.
    /// `closest`: of those within `threshold` the closest one, at work that does not depend on how many there are.
    /// `allow` restricts it to some ids; segments in `newer` may be missing from the answer. With `flood`, noise of that
    /// standard deviation comes first. Beside the answers: whether they depend on rows and queries alone, and which writers'
    /// segments failed their check and were passed over.
    #[pyo3(signature = (query, response, directory, count = None, threshold = None, allow = None, newer = Vec::new(), flood = None, closest = false))]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the keyword arguments of one Python call"
    )]
    fn open<'py>(
        &self,
        py: Python<'py>,
        query: &PySealedQuery,
        response: &[u8],
        directory: &PySegmentDirectory,
        count: Option<usize>,
        threshold: Option<f64>,
        allow: Option<Vec<PyId>>,
        newer: Vec<[u8; 16]>,
        flood: Option<f64>,
        closest: bool,
    ) -> PyResult<Answers<'py>> {
        let flood = flood.map(Flood::new).transpose().map_err(Raise::raise)?;
        let newer: Vec<_> = newer.into_iter().map(SegmentId).collect();
        let ask = match (closest, retrieval(count, threshold)?) {
            (true, Retrieval::Range(threshold)) => Retrieval::Closest(threshold),
            (_, asked) => asked,
        };
        let allow = allow.map(ids::unwrap);
        let opened = py
            .detach(|| {
                let guard = directory.read();
                let known = &*guard;
                let selection = allow.as_ref().map(|names| known.select(names));
                let selection = selection.as_ref();
                let flood = flood.as_ref();
                let options = OpenOptions { retrieval: ask, selection, newer: &newer, flood };
                runtime::run(|| self.0.open(&query.query, response, known, options))
            })
            .map_err(Raise::raise)?;
        query.note(opened.timings);
        answers(py, opened, count)
    }

    /// Draws the masks of `count` queries over the segments that the directory knows.
    fn request_tokens(
        &self,
        py: Python<'_>,
        count: usize,
        directory: &PySegmentDirectory,
        epoch: u32,
        format: &str,
    ) -> PyResult<PyTokenRequest> {
        let format = answer_format(format);
        let drawn = py.detach(|| {
            let guard = directory.read();
            let known = &*guard;
            runtime::run(|| self.0.request_tokens(count, known, epoch, format))
        });
        drawn.map(PyTokenRequest::of).map_err(Raise::raise)
    }

    /// Puts the tokens that the server's answer to a request gives into a pool; returns how many. A request is read once.
    fn read_tokens(
        &self,
        py: Python<'_>,
        request: &PyTokenRequest,
        answer: &[u8],
        directory: &PySegmentDirectory,
        pool: &PyTokenPool,
    ) -> PyResult<usize> {
        let request = request.take()?;
        let tokens = py.detach(|| {
            let guard = directory.read();
            let known = &*guard;
            runtime::run(|| self.0.read_tokens(request, answer, known))
        });
        let tokens = tokens.map_err(Raise::raise)?;
        let count = tokens.len();
        pool.0.add(tokens);
        Ok(count)
    }

    /// The whole answer to a query that has taken tokens, from the half that the server gave.
    fn complete<'py>(
        &self,
        py: Python<'py>,
        query: &PySealedQuery,
        answer: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let whole = runtime::detached(py, || self.0.complete(&query.query, answer))
            .map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &whole))
    }

    /// What one score says about noise that outlives it, as cosines: of its row, and of the epoch's keys.
    fn hints(&self, directory: &PySegmentDirectory) -> PyResult<(f64, f64)> {
        let hints = self.0.hints(&directory.read()).map_err(Raise::raise)?;
        Ok((hints.row, hints.key))
    }

    /// Encrypts one payload per row of a segment, bound to the collection, the segment, the row and the id.
    fn seal_records(
        &self,
        py: Python<'_>,
        segment_id: &[u8],
        ids: Vec<PyId>,
        payloads: Vec<Bound<'_, PyBytes>>,
    ) -> PyResult<PyRecordBatch> {
        if ids.len() != payloads.len() {
            let message =
                format!("one payload per id expected, got {} for {}", payloads.len(), ids.len());
            return Err(InvalidInput::new_err(message));
        }
        let id = segment::id(segment_id)?;
        let names = ids::unwrap(ids);
        let rows: Vec<_> =
            names.into_iter().zip(payloads.iter().map(|bytes| bytes.as_bytes().to_vec())).collect();
        runtime::detached(py, || {
            let binding = self.0.spec().binding();
            let place = Place { collection: &binding, segment: &id.0 };
            PyRecordBatch::read(seal_records(self.0.aead(), place, &rows).map_err(Raise::raise)?)
        })
    }

    /// Decrypts the payload of one row, under the key that the directory has for the segment, or the owner's own.
    #[pyo3(signature = (segment_id, records, row, id, directory = None))]
    fn open_record<'py>(
        &self,
        py: Python<'py>,
        segment_id: &[u8],
        records: &PyRecordBatch,
        row: usize,
        id: PyId,
        directory: Option<&PySegmentDirectory>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let segment = segment::id(segment_id)?;
        let binding = self.0.spec().binding();
        let place = Place { collection: &binding, segment: &segment.0 };
        let root = root_of(directory, segment);
        let aead = root.as_deref().map_or_else(|| self.0.aead(), SegmentRootKey::aead);
        let (Some(sealed), Ok(row)) = (records.ciphertext(row), u32::try_from(row)) else {
            return Err(CorruptData::new_err(format!(
                "the sealed records of this segment have no row {row}"
            )));
        };
        let plain = records::open_record(aead, place, &id.0, row, sealed).map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &plain))
    }

    /// Who sealed a writer's segment of this wrap, and when in milliseconds since 1970; zero where it does not say.
    fn written(&self, segment_id: &[u8], wrap: &[u8]) -> PyResult<(String, u64)> {
        let id = segment::id(segment_id)?;
        let written = self.0.written(id, wrap).map_err(Raise::raise)?;
        Ok((written.writer, written.time))
    }

    /// Authenticates a state under the owner's key.
    fn seal_state<'py>(&self, py: Python<'py>, facts: Facts) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.seal_state(&facts.record()).map_err(Raise::raise)?))
    }

    /// What `seal_state` was given, and the `key` that it was authenticated under.
    fn open_state<'py>(&self, py: Python<'py>, sealed: &[u8]) -> PyResult<Bound<'py, PyDict>> {
        state::facts(py, &self.0.open_state(sealed).map_err(Raise::raise)?)
    }

    /// The keyed hash of a filterable field's value.
    fn filter_tag<'py>(&self, py: Python<'py>, field: &str, value: &[u8]) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.tag(field, value))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "an owner holds secret keys and can't be pickled; make it again from the keys",
        ))
    }
}

/// What an answer may look like.
pub fn answer_format(format: &str) -> AnswerFormat {
    match format {
        "first" => AnswerFormat::First,
        _ => AnswerFormat::Short,
    }
}

/// The `count` closest, or those within a threshold.
pub fn retrieval(count: Option<usize>, threshold: Option<f64>) -> PyResult<Retrieval> {
    match (count, threshold) {
        (_, Some(threshold)) => Ok(Retrieval::Range(threshold)),
        (Some(count), None) => Ok(Retrieval::TopK(count)),
        (None, None) => Err(InvalidInput::new_err("give a count, a threshold, or both")),
    }
}

/// What an answer says, at most `count` of each query.
pub fn answers<'py>(
    py: Python<'py>,
    mut opened: Opened,
    count: Option<usize>,
) -> PyResult<Answers<'py>> {
    let answer = |hits: &mut Vec<Hit>| {
        hits.truncate(count.unwrap_or(usize::MAX));
        let names: PyResult<Vec<_>> = hits.iter().map(|hit| ids::to_python(py, &hit.id)).collect();
        let scores = PyArray1::from_iter(py, hits.iter().map(|hit| hit.value));
        Ok((PyList::new(py, names?)?, scores))
    };
    let found: PyResult<Vec<_>> = opened.hits.iter_mut().map(answer).collect();
    let disqualified = opened.disqualified.iter().map(|id| PyBytes::new(py, &id.0)).collect();
    Ok((found?, opened.exact, opened.checked, disqualified))
}

/// A batch of queries: bytes for the server, and what opening the answer needs.
#[pyclass(name = "SealedQuery", module = "ciphervec._native", frozen)]
pub struct PySealedQuery {
    pub query: Query,
    opened: Mutex<Option<OwnerTimings>>,
}

impl PySealedQuery {
    /// Keeps what opening an answer took.
    pub fn note(&self, timings: OwnerTimings) {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(timings);
    }
}

#[pymethods]
impl PySealedQuery {
    #[getter]
    fn nbytes(&self) -> usize {
        self.query.to_bytes().len()
    }

    #[getter]
    fn rows(&self) -> usize {
        self.query.len()
    }

    /// Bytes of the halves of its answers that were fetched ahead; 0 where it is answered whole.
    #[getter]
    fn ahead(&self) -> usize {
        self.query.ahead()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.query.to_bytes())
    }

    /// Which rows the filter chooses, by the owner's own tags: for each segment its id and a byte a row. Only the first word
    /// counts.
    fn expect_matching(&self, rows: Vec<([u8; 16], Vec<u8>)>) {
        let rows = rows
            .into_iter()
            .map(|(id, rows)| (SegmentId(id), rows.into_iter().map(|one| one != 0).collect()));
        self.query.expect_matching(rows);
    }

    /// Milliseconds: `prepare_ms`, and once the answer was opened `decrypt_ms` and `top_k_ms`; and how many rows' noise was taken off
    /// for that, `settled_rows`.
    fn timings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        out.set_item("prepare_ms", self.query.seconds() * 1e3)?;
        if let Some(opened) = *self.opened.lock().unwrap_or_else(PoisonError::into_inner) {
            out.set_item("decrypt_ms", opened.decrypt * 1e3)?;
            out.set_item("top_k_ms", opened.rank * 1e3)?;
            out.set_item("settled_rows", opened.settled)?;
        }
        Ok(out)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a sealed query holds secrets and can't be pickled; send its to_bytes()",
        ))
    }
}
