//! The server's index: sealed segments and public evaluation keys answer sealed queries. It cannot name a secret key.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ciphervec_arith::AlignedBytes;
use ciphervec_owner::protect::filter::FilterTags;
use ciphervec_owner::search::{ServerIndex, ServerTimings, Sink};
use ciphervec_owner::{IndexSpec, SegmentId};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::{CorruptData, InvalidInput, Raise};
use crate::keys::grouped;
use crate::segment::{self, PySealedSegment};
use crate::sessions::PySessionKeys;
use crate::spec::PyIndexSpec;
use crate::store::PyStore;
use crate::{bundle, runtime};

const MAGIC: [u8; 4] = *b"CVSI";
const WHAT: &str = "a server index";

/// The index, and the bytes that it does not hand back by itself.
struct IndexState {
    index: ServerIndex,
    tags: HashMap<[u8; 16], Vec<u8>>,
    evaluation: BTreeMap<u32, Vec<u8>>,
}

/// The half that searches. It holds sealed segments and public evaluation keys, never a secret.
#[pyclass(name = "ServerIndex", module = "ciphervec", frozen)]
pub struct PyServerIndex {
    held: RwLock<IndexState>,
    timings: Mutex<ServerTimings>,
}

impl PyServerIndex {
    fn read(&self) -> RwLockReadGuard<'_, IndexState> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, IndexState> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index as it is now.
    pub fn snapshot(&self) -> ServerIndex {
        self.read().index.clone()
    }

    /// Keeps what an answer took.
    pub fn note(&self, timings: ServerTimings) {
        *self.timings.lock().unwrap_or_else(PoisonError::into_inner) = timings;
    }

    /// The segments held, in the order they came.
    pub fn ids(&self) -> Vec<SegmentId> {
        self.read().index.segments().map(|segment| segment.head().id).collect()
    }

    /// Everything it holds.
    pub fn pack(&self) -> PyResult<Vec<u8>> {
        let held = self.read();
        let spec = held.index.spec().to_bytes();
        let epochs = (held.evaluation.len() as u32).to_le_bytes();
        let index = &held.index;
        let bytes = index.segments().map(|segment| segment.to_bytes(index.spec()));
        let segments = runtime::run(|| bytes.collect::<ciphervec_owner::Result<Vec<_>>>())
            .map_err(Raise::raise)?;
        let mut parts: Vec<&[u8]> = vec![&spec, &epochs];
        parts.extend(held.evaluation.values().map(Vec::as_slice));
        for (segment, bytes) in held.index.segments().zip(&segments) {
            parts.push(bytes);
            parts.push(held.tags.get(&segment.head().id.0).map_or(&[][..], Vec::as_slice));
        }
        Ok(bundle::pack(MAGIC, &parts))
    }

    /// Reads what [`Self::pack`] made.
    pub fn unpack(data: &[u8]) -> PyResult<Self> {
        let corrupt =
            || CorruptData::new_err(format!("{WHAT}: its parts are not those of an index"));
        let parts = bundle::unpack(WHAT, MAGIC, data)?;
        let [spec, epochs, rest @ ..] = &parts[..] else { return Err(corrupt()) };
        let epochs = u32::from_le_bytes((*epochs).try_into().map_err(|_| corrupt())?) as usize;
        let (keys, segments) = rest.split_at_checked(epochs).ok_or_else(corrupt)?;
        let index = Self::empty(IndexSpec::from_bytes(spec).map_err(Raise::raise)?)?;
        keys.iter().try_for_each(|keys| index.install(keys))?;
        let (pairs, []) = segments.as_chunks::<2>() else { return Err(corrupt()) };
        for [segment, tags] in pairs {
            let tags = (!tags.is_empty()).then_some(*tags);
            index.take_in(AlignedBytes::from_slice(segment), tags)?;
        }
        Ok(index)
    }

    fn empty(spec: IndexSpec) -> PyResult<Self> {
        let index = ServerIndex::new(spec).map_err(Raise::raise)?;
        let held = IndexState { index, tags: HashMap::new(), evaluation: BTreeMap::new() };
        Ok(Self { held: RwLock::new(held), timings: Mutex::new(ServerTimings::default()) })
    }

    fn take_in(&self, bytes: AlignedBytes, tags: Option<&[u8]>) -> PyResult<SegmentId> {
        let table =
            tags.map(FilterTags::from_bytes).transpose().map_err(Raise::raise)?.unwrap_or_default();
        let mut held = self.write();
        let index = &mut held.index;
        let id = runtime::run(|| index.add_tagged(bytes, table)).map_err(Raise::raise)?;
        if let Some(tags) = tags {
            held.tags.insert(id.0, tags.to_vec());
        }
        Ok(id)
    }

    fn install(&self, data: &[u8]) -> PyResult<()> {
        let mut held = self.write();
        let spec = held.index.spec();
        if data.is_empty() && !spec.form().needs_evaluation_keys() {
            return Ok(());
        }
        let index = &mut held.index;
        let epoch = runtime::run(|| index.set_evaluation_keys(data)).map_err(Raise::raise)?;
        held.evaluation.insert(epoch, data.to_vec());
        Ok(())
    }
}

#[pymethods]
impl PyServerIndex {
    #[new]
    fn new(spec: &PyIndexSpec) -> PyResult<Self> {
        Self::empty(spec.0.clone())
    }

    /// Bytes of the segments held.
    #[getter]
    fn nbytes(&self) -> usize {
        self.read().index.bytes()
    }

    /// Vectors held.
    #[getter]
    fn rows(&self) -> usize {
        self.read().index.rows()
    }

    /// Name, dimension, metric, mode and precision.
    #[getter]
    fn spec(&self) -> PyIndexSpec {
        PyIndexSpec(self.read().index.spec().clone())
    }

    /// Takes in a segment, as bytes or as a `SealedSegment`, and the tags of its filterable fields; returns its id.
    /// Raises CorruptData, or InvalidInput when it is another index's or held already.
    #[pyo3(signature = (segment, tags = None))]
    fn add<'py>(
        &self,
        py: Python<'py>,
        segment: &Bound<'py, PyAny>,
        tags: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let id = if let Ok(sealed) = segment.cast::<PySealedSegment>() {
            let sealed = sealed.get();
            py.detach(|| self.take_in(sealed.0.segment.clone(), tags))?
        } else {
            let Ok(data) = segment.extract::<&[u8]>() else {
                let kind = segment.get_type().name()?;
                return Err(InvalidInput::new_err(format!(
                    "a segment is bytes or a SealedSegment, got {kind}"
                )));
            };
            py.detach(|| self.take_in(AlignedBytes::from_slice(data), tags))?
        };
        Ok(PyBytes::new(py, &id.0))
    }

    /// Takes in a segment that lies in a folder, without a detour through Python.
    #[pyo3(signature = (store, segment_id, blob, tags = None))]
    fn add_from<'py>(
        &self,
        py: Python<'py>,
        store: &PyStore,
        segment_id: &[u8],
        blob: &str,
        tags: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let named = segment::id(segment_id)?;
        let bytes = store.read_aligned(py, &named.0, blob)?;
        let id = py.detach(|| self.take_in(bytes, tags))?;
        if id != named {
            self.write().index.remove(id);
            return Err(CorruptData::new_err(format!(
                "segment {named} holds the rows of segment {id}"
            )));
        }
        Ok(PyBytes::new(py, &id.0))
    }

    /// Drops a segment; whether it was there.
    fn remove(&self, py: Python<'_>, segment_id: &[u8]) -> PyResult<bool> {
        let id = segment::id(segment_id)?;
        let removed = py.detach(|| {
            let mut held = self.write();
            held.tags.remove(&id.0);
            held.index.remove(id)
        });
        Ok(removed)
    }

    /// The sealed bytes of a segment.
    fn segment<'py>(&self, py: Python<'py>, segment_id: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let id = segment::id(segment_id)?;
        let held = self.read();
        let found = held.index.segments().find(|segment| segment.head().id == id);
        let found =
            found.ok_or_else(|| InvalidInput::new_err(format!("no segment {id} is held here")))?;
        let bytes =
            runtime::detached(py, || found.to_bytes(held.index.spec())).map_err(Raise::raise)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The ids of the segments held, in the order they came.
    fn segment_ids<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.ids().iter().map(|id| PyBytes::new(py, &id.0)).collect()
    }

    /// Installs the owner's evaluation keys for an epoch; those of earlier epochs stay. Modes whose queries are not
    /// encrypted have none: empty bytes. Under an additively homomorphic scheme they are the public key, which comes before
    /// any segment. Raises CorruptData, WrongKey, or InvalidInput when they are another index's.
    fn set_evaluation_keys(&self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        py.detach(|| self.install(data))
    }

    /// Drops the evaluation keys of an epoch that is over; whether they were there.
    fn forget_epoch(&self, py: Python<'_>, epoch: u32) -> bool {
        py.detach(|| {
            let mut held = self.write();
            held.evaluation.remove(&epoch);
            held.index.forget_epoch(epoch)
        })
    }

    /// Another index with the same segments and keys, which the two share: one can change while the other answers.
    fn copy(&self) -> Self {
        let held = self.read();
        let index = IndexState {
            index: held.index.clone(),
            tags: held.tags.clone(),
            evaluation: held.evaluation.clone(),
        };
        Self { held: RwLock::new(index), timings: Mutex::new(ServerTimings::default()) }
    }

    /// Reads and checks the evaluation keys of a client's session: of the owner whose keys are installed, under the same
    /// public masks. They are not installed: `evaluate` takes them. Raises CorruptData, WrongKey, or InvalidInput when they
    /// are another index's or no session's.
    fn session_keys(&self, py: Python<'_>, data: &[u8]) -> PyResult<PySessionKeys> {
        let read = py.detach(|| {
            let held = self.read();
            let index = &held.index;
            runtime::run(|| index.session_keys(data))
        });
        read.map(PySessionKeys).map_err(Raise::raise)
    }

    /// The session whose evaluation keys a query wants; None where it wants none. Nothing of the query is checked.
    fn session_of(&self, query: &[u8]) -> Option<u32> {
        self.read().index.session_of(query)
    }

    /// Answers a `SealedQuery.to_bytes()` over every segment, with `keys` if it is of a session. Raises CorruptData, WrongKey
    /// or InvalidInput.
    #[pyo3(signature = (query, keys = None))]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        query: &[u8],
        keys: Option<&PySessionKeys>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let answer = py.detach(|| {
            // Locked before the pool is entered: a pool thread must never wait for a lock.
            let held = self.read();
            let index = &held.index;
            let answer = runtime::run(|| match keys {
                Some(keys) => index.evaluate_with(query, &keys.0),
                None => index.evaluate(query),
            });
            answer.map_err(Raise::raise)
        })?;
        self.note(answer.timings);
        Ok(PyBytes::new(py, &answer.bytes))
    }

    /// As `evaluate`, for an answer that an `AnswerOpener` for this process opens meanwhile: it goes to `write` in pieces of a
    /// megabyte or a segment. Raises as `evaluate`, and what `write` raises.
    fn evaluate_into(
        &self,
        py: Python<'_>,
        query: &[u8],
        write: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let write = write.clone().unbind();
        let mut raised = None;
        let timings = py.detach(|| {
            // A state of its own: whoever writes may wait for others, who may want to change this one.
            let index = self.snapshot();
            let mut piece = |bytes: &[u8]| {
                let wrote =
                    Python::attach(|py| write.call1(py, (PyBytes::new(py, bytes),)).map(drop));
                raised = wrote.err();
                raised.is_none()
            };
            let run = |work: &mut (dyn FnMut() + Send)| runtime::run(work);
            let mut sink = Sink { run: &run, write: &mut piece };
            index.evaluate_into(query, None, &mut sink).map_err(Raise::raise)
        })?;
        self.note(timings);
        raised.map_or(Ok(()), Err)
    }

    /// Milliseconds that the latest answer took: `expand_ms`, `scan_ms`, `respond_ms`.
    fn timings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let timings = *self.timings.lock().unwrap_or_else(PoisonError::into_inner);
        let out = PyDict::new(py);
        out.set_item("expand_ms", timings.expand * 1e3)?;
        out.set_item("scan_ms", timings.scan * 1e3)?;
        out.set_item("respond_ms", timings.respond * 1e3)?;
        Ok(out)
    }

    /// Everything it holds: description, segments, tags, evaluation keys.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.pack())?))
    }

    /// Reads what `to_bytes` wrote. Raises CorruptData or UnsupportedVersion.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        py.detach(|| Self::unpack(data))
    }

    fn __repr__(&self) -> String {
        let held = self.read();
        let (rows, size) = (grouped(held.index.rows()), grouped(held.index.bytes()));
        format!(
            "<ciphervec.ServerIndex of {:?}, {rows} rows, {size} bytes>",
            held.index.spec().collection()
        )
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py())?,)))
    }
}

/// The answer of an index with the segments `order`, of 16 bytes each, from answers to the same query over parts of them: bit
/// for bit what one index would have answered. Raises CorruptData, WrongKey or InvalidInput, also when they have a segment
/// twice or, where the query has no filter, not all.
#[pyfunction]
pub fn merge_responses<'py>(
    py: Python<'py>,
    spec: &PyIndexSpec,
    query: &[u8],
    order: Vec<[u8; 16]>,
    shares: Vec<Bound<'py, PyBytes>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let shares: Vec<&[u8]> = shares.iter().map(|share| share.as_bytes()).collect();
    let merged = runtime::detached(py, || {
        let order: Vec<SegmentId> = order.into_iter().map(SegmentId).collect();
        ciphervec_owner::search::merge_responses(&spec.0, query, &order, &shares)
            .map_err(Raise::raise)
    })?;
    Ok(PyBytes::new(py, &merged))
}
