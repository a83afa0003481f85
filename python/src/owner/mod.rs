//! The owner's half for Python: what it seals, asks and opens; the core does the work.

mod index_file;

use std::sync::Arc;

use ciphervec_client::{Ask, Host, OwnersHalf, Wanted, Wish};
use ciphervec_he_secret::wire::{self, Kind};
use ciphervec_owner::protect::records::{self, Place, seal_records};
use ciphervec_owner::search::{AnswerFormat, Expected, RotationState, SegmentRootKey};
use ciphervec_owner::{Network, Scheme, SegmentId};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::client::{Answered, PyCallHost, answered, audience, run};
use crate::errors::{CorruptData, InvalidInput, Raise};
use crate::ids::{self, PyId};
use crate::keys::{PyEvaluationKeys, PyKeys};
use crate::known_rows::PyKnownRows;
use crate::query::{PyAnswerOpener, PySealedQuery, noted};
use crate::records::PyRecordBatch;
use crate::segment::{self, PySealedSegment};
use crate::server::PyServerIndex;
use crate::spec::PyIndexSpec;
use crate::tokens::{PyTokenPool, PyTokenRequest};
use crate::writer::PyWriterCard;
use crate::{arrays, runtime};

pub use index_file::PyIndexFile;

/// Deviation, queries, queries left, rows an epoch, rows left.
type Plan = (f64, u64, u64, u64, u64);

/// The half that holds the keys. `ciphervec.Owner` is this, with what callers pass checked.
#[pyclass(name = "Owner", module = "ciphervec._native", frozen, subclass, extends = PyKnownRows)]
pub struct PyOwner(pub Arc<OwnersHalf>);

/// The most hits, the largest distance, the only ids, who reads them, the noise for others, segments that may be missing.
type PyWish = (Option<usize>, Option<f64>, Option<Vec<PyId>>, Option<String>, f64, Vec<[u8; 16]>);

fn wish((count, within, among, audience, flooding, newer): PyWish) -> PyResult<Wish> {
    let wanted = Wanted { count, within, among: among.map(ids::unwrap) };
    let newer = newer.into_iter().map(SegmentId).collect();
    Ok(Wish { wanted, audience: self::audience(audience.as_deref())?, flooding, newer })
}

impl PyOwner {
    fn has_pair(&self) -> bool {
        self.0.owner().spec().scheme() != Scheme::Lattice
    }
}

/// What rows are packed for; `network` is bytes a second and seconds there and back.
fn expected_rows(rows: usize, network: Option<(f64, f64)>) -> Expected {
    Expected { rows, network: network.map_or_else(Network::default, crate::client::network) }
}

#[pymethods]
impl PyOwner {
    #[new]
    #[pyo3(signature = (keys, spec, mask_seed = None, previous = None, center = Vec::new()))]
    fn new(
        py: Python<'_>,
        keys: &PyKeys,
        spec: &PyIndexSpec,
        mask_seed: Option<[u8; 32]>,
        previous: Option<&PyKeys>,
        center: Vec<f32>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let custody = RotationState { mask_seed, previous: previous.map(|keys| &*keys.0) };
        let face = ciphervec_client::Face::Python;
        let made = py.detach(|| OwnersHalf::new(face, &keys.0, spec.0.clone(), &custody, center));
        let half = Arc::new(made.map_err(Raise::raise)?);
        let known = PyClassInitializer::from(PyKnownRows(Arc::clone(&half)));
        Ok(known.add_subclass(Self(half)))
    }

    /// Name, dimension, metric, mode, precision and scheme.
    #[getter]
    fn spec(&self) -> PyIndexSpec {
        PyIndexSpec(self.0.owner().spec().clone())
    }

    /// The public name of the key that seals here.
    #[getter]
    fn key_id(&self) -> String {
        self.0.owner().key_id().to_string()
    }

    /// Whether the scheme is one with a key pair for each index, which is generated or opened before use.
    #[getter]
    fn has_key_pair(&self) -> bool {
        self.has_pair()
    }

    /// The 32 bytes that the public masks come from; they outlive the keys.
    #[getter]
    fn mask_seed<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.owner().mask_seed())
    }

    /// Make the key pair of a new index, once: some seconds for long keys. Raises InvalidInput.
    fn generate_key_pair(&self, py: Python<'_>) -> PyResult<()> {
        runtime::detached(py, || self.0.owner().generate_key_pair()).map_err(Raise::raise)
    }

    /// Take in what `sealed_key_pair` gave, after a restart. Raises CorruptData.
    fn open_key_pair(&self, py: Python<'_>, sealed: &[u8]) -> PyResult<()> {
        runtime::detached(py, || self.0.owner().open_key_pair(sealed)).map_err(Raise::raise)
    }

    /// The key pair, encrypted under the owner's key and bound to this index: to be kept beside it.
    fn sealed_key_pair<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let owner = self.0.owner();
        let sealed = runtime::detached(py, || owner.sealed_key_pair()).map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &sealed))
    }

    /// The evaluation keys of an epoch, to hand over before `epoch` is changed; the public key, if the index has a key pair.
    fn evaluation_at(&self, py: Python<'_>, epoch: u32) -> PyResult<PyEvaluationKeys> {
        let owner = self.0.owner();
        if self.has_pair() {
            let bytes = owner.public_key().map_err(Raise::raise)?;
            let (header, _) = wire::open(Kind::PublicKey, &bytes).map_err(Raise::raise)?;
            return Ok(PyEvaluationKeys::of_public_key(bytes, header.key.to_string()));
        }
        let made = runtime::detached(py, || owner.evaluation(epoch)).map_err(Raise::raise)?;
        let bytes = made.map(|keys| keys.to_bytes()).unwrap_or_default();
        Ok(PyEvaluationKeys::new(bytes, epoch, self.key_id()))
    }

    /// Take in the evaluation keys that a server was given, where they are not `evaluation()`'s: those of collections made before
    /// 0.2. Answers are checked against what a server computes with them, so they must be known to be the owner's. Raises
    /// CorruptData or WrongKey.
    fn hold_evaluation(&self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        runtime::detached(py, || self.0.owner().hold_evaluation(data)).map_err(Raise::raise)
    }

    /// What the writer of this name needs in order to seal for this index, see `Writer`. The same name gives the same card.
    #[pyo3(signature = (writer, filterable = Vec::new()))]
    fn writer_card(
        &self,
        py: Python<'_>,
        writer: &str,
        filterable: Vec<String>,
    ) -> PyResult<PyWriterCard> {
        let make = || self.0.owner().writer_card_around(writer, &filterable, &self.0.center());
        runtime::detached(py, make).map(PyWriterCard).map_err(Raise::raise)
    }

    /// Whether this owner made the card, and nothing of it was changed since.
    fn knows_card(&self, card: &PyWriterCard) -> bool {
        self.0.owner().knows_card(&card.0)
    }

    /// Looks at rows that are to be added, and warns once where their distances will not tell them apart.
    #[pyo3(name = "_see")]
    fn see(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        rows: PyReadonlyArray2<'_, f32>,
    ) -> PyResult<()> {
        let rows = arrays::rows(&rows, self.0.owner().spec().dimension())?;
        run(py, host, async |host| self.0.see(host, rows))
    }

    /// Seals rows under a new nonce. `expected` is how many the index will hold, for the packing; unset, these. `network` is what
    /// answers travel over: bytes a second, seconds there and back. Without a center, around the one that suits the rows.
    #[pyo3(name = "_seal", signature = (vectors, ids, expected = None, network = None, center = None))]
    fn seal(
        &self,
        py: Python<'_>,
        vectors: PyReadonlyArray2<'_, f32>,
        ids: Vec<PyId>,
        expected: Option<usize>,
        network: Option<(f64, f64)>,
        center: Option<Vec<f32>>,
    ) -> PyResult<PySealedSegment> {
        let rows = arrays::rows(&vectors, self.0.owner().spec().dimension())?;
        let names = ids::unwrap(ids);
        let expected = expected_rows(expected.unwrap_or(names.len()), network);
        let sealed = py.detach(|| self.0.seal(rows, &names, &expected, center.as_deref()));
        sealed.map(PySealedSegment).map_err(Raise::raise)
    }

    /// Seals queries for the segments that are known, or for those of them in `segments`. `tags` restrict the answer on the server.
    /// Where `tokens` has one for each row they are taken out and used; not with `segments`.
    #[pyo3(name = "_query")]
    #[expect(clippy::too_many_arguments, reason = "they are the arguments of one Python call")]
    fn query(
        &self,
        py: Python<'_>,
        vectors: PyReadonlyArray2<'_, f32>,
        epoch: u32,
        tags: Vec<[u8; 16]>,
        segments: Option<Vec<[u8; 16]>>,
        answers: &str,
        tokens: Option<&PyTokenPool>,
        center: Option<PyReadonlyArray1<'_, f32>>,
    ) -> PyResult<PySealedQuery> {
        let format = answer_format(answers)?;
        let segments = segments.map(|ids| ids.into_iter().map(SegmentId).collect::<Vec<_>>());
        let rows = arrays::rows(&vectors, self.0.owner().spec().dimension())?;
        let center = center.map(|center| center.as_slice().map(<[f32]>::to_vec)).transpose()?;
        let ask = Ask {
            epoch,
            tags: &tags,
            segments: segments.as_deref(),
            format,
            tokens: tokens.map(|pool| &pool.0),
            center: center.as_deref(),
        };
        py.detach(|| self.0.query(rows, ask)).map(PySealedQuery::new).map_err(Raise::raise)
    }

    /// Takes in a plain query that somebody else made, and checks that its probes are unit vectors.
    #[pyo3(name = "_read_query")]
    fn read_query(&self, py: Python<'_>, query: &[u8], epoch: u32) -> PyResult<PySealedQuery> {
        let read = py.detach(|| self.0.read_query(query, epoch));
        read.map(PySealedQuery::new).map_err(Raise::raise)
    }

    /// Decrypts and ranks an answer: the hits of each query, whether all was checked, whether they carry noise of the key, the
    /// segments passed over; and whether they depend on rows and queries alone.
    #[pyo3(name = "_open")]
    fn open<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        query: &PySealedQuery,
        response: &[u8],
        wish: PyWish,
    ) -> PyResult<(Answered<'py>, bool)> {
        let wish = self::wish(wish)?;
        let open = async |host: &dyn Host| self.0.open(host, &query.query, response, &wish).await;
        noted(py, query, run(py, host, open)?)
    }

    /// What opens an answer as it comes. `local`: what `ServerIndex.evaluate_into` writes in this process, which has no checksum.
    #[pyo3(name = "_opener")]
    fn opener(
        slf: &Bound<'_, Self>,
        host: &PyCallHost,
        query: Py<PySealedQuery>,
        wish: PyWish,
        local: bool,
    ) -> PyResult<PyAnswerOpener> {
        let (wish, half) = (self::wish(wish)?, Arc::clone(&slf.get().0));
        let asked = &query.get().query;
        let receive = async |host: &dyn Host| half.receiver(host, asked, &wish, local).await;
        let receiver = run(slf.py(), host, receive)?;
        Ok(PyAnswerOpener::new(half, query, receiver))
    }

    /// The hits of each query by a server's half in this process, as `_open` gives them.
    #[pyo3(name = "_search")]
    fn search<'py>(
        &self,
        py: Python<'py>,
        host: &PyCallHost,
        server: &PyServerIndex,
        vectors: PyReadonlyArray2<'py, f32>,
        epoch: u32,
        wish: PyWish,
    ) -> PyResult<(Answered<'py>, bool)> {
        let wish = self::wish(wish)?;
        let rows = arrays::rows(&vectors, self.0.owner().spec().dimension())?;
        let index = server.snapshot();
        let found =
            run(py, host, async |host| self.0.search(host, &index, (rows, epoch), &wish).await)?;
        if let Some(timings) = found.timings {
            server.note(timings);
        }
        let exact = found.answer.exact;
        Ok((answered(py, found.answer)?, exact))
    }

    /// What flooding allows and what of it is left, under the query key of this epoch.
    #[pyo3(name = "_flooding_plan")]
    fn flooding_plan(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        deviation: f64,
        epoch: u32,
    ) -> PyResult<Plan> {
        let plan = async |host: &dyn Host| self.0.flooding_plan(host, deviation, epoch).await;
        let plan = run(py, host, plan)?;
        let of_rows = (plan.queries, plan.queries_left);
        Ok((plan.deviation, of_rows.0, of_rows.1, plan.rows_an_epoch, plan.rows_left))
    }

    /// Draws the masks of `count` queries over the segments that are known.
    #[pyo3(name = "_request_tokens")]
    fn request_tokens(
        &self,
        py: Python<'_>,
        count: usize,
        epoch: u32,
        answers: &str,
    ) -> PyResult<PyTokenRequest> {
        let format = answer_format(answers)?;
        let drawn = py.detach(|| {
            let guard = self.0.read();
            let known = &*guard;
            runtime::run(|| self.0.owner().request_tokens(count, known, epoch, format))
        });
        drawn.map(PyTokenRequest::of).map_err(Raise::raise)
    }

    /// Make tokens of the server's answer to a request, once, and put them into a pool; returns how many. Raises CorruptData for
    /// damaged bytes, and where the server has other segments than are attached.
    fn read_tokens(
        &self,
        py: Python<'_>,
        request: &PyTokenRequest,
        response: &[u8],
        into: &PyTokenPool,
    ) -> PyResult<usize> {
        let request = request.take()?;
        let tokens = py.detach(|| {
            let guard = self.0.read();
            let known = &*guard;
            runtime::run(|| self.0.owner().read_tokens(request, response, known))
        });
        let tokens = tokens.map_err(Raise::raise)?;
        let count = tokens.len();
        into.0.add(tokens);
        Ok(count)
    }

    /// The whole answer to a query that has taken tokens, from the half that the server gave.
    #[pyo3(name = "_complete")]
    fn complete<'py>(
        &self,
        py: Python<'py>,
        query: &PySealedQuery,
        answer: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let whole = || self.0.owner().complete(query.query.query(), answer);
        Ok(PyBytes::new(py, &runtime::detached(py, whole).map_err(Raise::raise)?))
    }

    /// Encrypt one payload per id, each bound to this collection, segment, row and id.
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
            let binding = self.0.owner().spec().binding();
            let place = Place { collection: &binding, segment: &id.0 };
            PyRecordBatch::read(
                seal_records(self.0.owner().aead(), place, &rows).map_err(Raise::raise)?,
            )
        })
    }

    /// Decrypt one payload. Raises CorruptData when it was sealed for another place, or changed.
    fn open_record<'py>(
        &self,
        py: Python<'py>,
        segment_id: &[u8],
        records: &PyRecordBatch,
        row: usize,
        id: PyId,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let segment = segment::id(segment_id)?;
        let binding = self.0.owner().spec().binding();
        let place = Place { collection: &binding, segment: &segment.0 };
        // A segment that is not the owner's own has a key of its own.
        let root = self.0.read().root(segment).map(Arc::clone);
        let aead = root.as_deref().map_or_else(|| self.0.owner().aead(), SegmentRootKey::aead);
        let (Some(sealed), Ok(row)) = (records.ciphertext(row), u32::try_from(row)) else {
            return Err(CorruptData::new_err(format!(
                "the sealed records of this segment have no row {row}"
            )));
        };
        let plain = records::open_record(aead, place, &id.0, row, sealed).map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &plain))
    }

    /// The keyed hash under which the server can test `field == value` without learning either.
    fn filter_tag<'py>(&self, py: Python<'py>, field: &str, value: &[u8]) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.owner().filter_tag(field, value))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "an owner holds secret keys and can't be pickled; make it again from the keys",
        ))
    }
}

/// What an answer may look like.
fn answer_format(name: &str) -> PyResult<AnswerFormat> {
    match name {
        "first" => Ok(AnswerFormat::First),
        "short" => Ok(AnswerFormat::Short),
        _ => Err(InvalidInput::new_err(format!(
            "answers must be one of first, short; got {name:?}."
        ))),
    }
}
