//! The native store of a collection, in a folder or a bucket: blobs in atomic commits, checked when they are read.
//! Needs no key.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use ciphervec_arith::buffer::AlignedBytes;
use ciphervec_owner::store::{
    Change, CommitKey, Medium, NewSegment, SegmentId, Staged, Store, StoreError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

#[cfg(not(feature = "server"))]
use crate::errors::InvalidInput;
#[cfg(feature = "server")]
use crate::errors::StorageError;
use crate::errors::{CiphervecError, Raise};
use crate::runtime;

type Segment<'py> = (Bound<'py, PyBytes>, u32, Bound<'py, PyDict>, Vec<u32>);
type Added = (SegmentId, u32, std::collections::BTreeMap<String, Bytes>);

/// Blob bytes borrowed from Python while a commit writes them.
struct Bytes(Vec<u8>);

impl<'py> FromPyObject<'_, 'py> for Bytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(object.cast::<PyBytes>()?.as_bytes().to_vec()))
    }
}

/// What lies in a bucket, where the path says so; `None` for a folder.
fn bucket(path: &str) -> PyResult<Option<Arc<dyn Medium>>> {
    if !path.starts_with("s3://") {
        return Ok(None);
    }
    #[cfg(feature = "server")]
    return ciphervec_server::storage::bucket_medium(path)
        .map(Some)
        .map_err(|error| StorageError::new_err(format!("cannot open {path}: {error}")));
    #[cfg(not(feature = "server"))]
    Err(InvalidInput::new_err(format!(
        "{path} is in a bucket, and this build has no server, which brings what reads buckets; make one with make wheel"
    )))
}

fn segments(add: Vec<Added>) -> Vec<NewSegment> {
    add.into_iter().map(|(id, rows, parts)| NewSegment { id, rows, blobs: blobs(parts) }).collect()
}

fn blobs(parts: std::collections::BTreeMap<String, Bytes>) -> Vec<(String, Vec<u8>)> {
    parts.into_iter().map(|(name, Bytes(bytes))| (name, bytes)).collect()
}

/// Segments whose blobs a store has written and that no commit names yet.
#[pyclass(name = "StagedSegments", module = "ciphervec._native", frozen)]
pub struct PyStagedSegments(Staged);

/// One collection's folder, or its part of a bucket. Closed explicitly, or when the last reference goes.
#[pyclass(name = "Store", module = "ciphervec._native", frozen)]
pub struct PyStore(Mutex<Option<Store>>);

impl PyStore {
    fn new(store: Store) -> Self {
        Self(Mutex::new(Some(store)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Store>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut guard = self.lock();
            let store =
                guard.as_mut().ok_or_else(|| CiphervecError::new_err("this store was closed"))?;
            runtime::run(|| work(store)).map_err(Raise::raise)
        })
    }

    /// One blob, every block checked.
    pub fn read_aligned(
        &self,
        py: Python<'_>,
        segment: &SegmentId,
        blob: &str,
    ) -> PyResult<AlignedBytes> {
        self.with(py, |store| store.read(segment, blob))
    }
}

#[pymethods]
impl PyStore {
    #[staticmethod]
    fn create(py: Python<'_>, path: &str, meta: &[u8]) -> PyResult<Self> {
        py.detach(|| runtime::run(|| Store::create(Path::new(path), meta)))
            .map(Self::new)
            .map_err(Raise::raise)
    }

    #[staticmethod]
    fn open(py: Python<'_>, path: &str) -> PyResult<Self> {
        let bucket = bucket(path)?;
        py.detach(|| {
            runtime::run(|| match bucket {
                Some(medium) => Store::open_on(medium),
                None => Store::open(Path::new(path)),
            })
        })
        .map(Self::new)
        .map_err(Raise::raise)
    }

    #[staticmethod]
    fn open_read_only(py: Python<'_>, path: &str) -> PyResult<Self> {
        let bucket = bucket(path)?;
        py.detach(|| {
            runtime::run(|| match bucket {
                Some(medium) => Store::open_read_only_on(medium),
                None => Store::open_read_only(Path::new(path)),
            })
        })
        .map(Self::new)
        .map_err(Raise::raise)
    }

    /// Hash of the manifest of the latest commit.
    #[getter]
    fn head<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.with(py, |store| Ok(store.head()))?))
    }

    /// Moves on to the newest commit; whether there was one. For readers, and for writers to a bucket.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, Store::refresh)
    }

    /// Writes the blobs of new segments, for `commit_staged` of this very store.
    fn stage(&self, py: Python<'_>, add: Vec<Added>) -> PyResult<PyStagedSegments> {
        let add = segments(add);
        self.with(py, |store| store.stage(add)).map(PyStagedSegments)
    }

    /// One commit that adds what was staged and sets attachments; its number. `None`, with nothing done, where another
    /// writer to a bucket was faster: the store shows that one's commit then, to be looked at before the same is tried again.
    fn commit_staged(
        &self,
        py: Python<'_>,
        staged: &PyStagedSegments,
        attachments: std::collections::BTreeMap<String, Bytes>,
    ) -> PyResult<Option<u64>> {
        let attachments = blobs(attachments);
        self.with(py, |store| match store.commit_staged(&staged.0, attachments) {
            Err(StoreError::Conflict { .. }) if store.is_shared() => store.refresh().map(|_| None),
            done => done.map(|done| Some(done.version)),
        })
    }

    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let meta = self.with(py, |store| Ok(store.meta().to_vec()))?;
        Ok(PyBytes::new(py, &meta))
    }

    #[getter]
    fn version(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |store| Ok(store.version()))
    }

    /// (id, rows, bytes of each blob, deleted rows) of every segment, oldest first.
    fn segments<'py>(&self, py: Python<'py>) -> PyResult<Vec<Segment<'py>>> {
        let entries = self.with(py, |store| Ok(store.segments().to_vec()))?;
        let describe = |entry: &ciphervec_owner::store::SegmentEntry| {
            let sizes = PyDict::new(py);
            for (name, blob) in entry.blobs() {
                sizes.set_item(name, blob.length)?;
            }
            Ok((PyBytes::new(py, &entry.id), entry.rows, sizes, entry.deleted.iter().collect()))
        };
        entries.iter().map(describe).collect()
    }

    /// One atomic commit; returns its number. With a key of 16 bytes, which stands for this very change, it is made once
    /// however often it is asked for.
    #[pyo3(signature = (*, add = Vec::new(), remove = Vec::new(), delete_rows = Vec::new(), meta = None,
                        attachments = None, key = None))]
    #[expect(clippy::too_many_arguments, reason = "Python's keywords")]
    fn commit(
        &self,
        py: Python<'_>,
        add: Vec<Added>,
        remove: Vec<SegmentId>,
        delete_rows: Vec<(SegmentId, Vec<u32>)>,
        meta: Option<&[u8]>,
        attachments: Option<std::collections::BTreeMap<String, Bytes>>,
        key: Option<[u8; 16]>,
    ) -> PyResult<u64> {
        let change = Change {
            add: segments(add),
            remove,
            delete_rows,
            set_meta: meta.map(<[u8]>::to_vec),
            attachments: attachments.map(blobs).unwrap_or_default(),
            ..Change::default()
        };
        let key = key.map(|key| CommitKey { key, digest: key });
        self.with(py, |store| store.commit_keyed(&change, key).map(|done| done.version))
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        segment_id: SegmentId,
        blob: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.read_aligned(py, &segment_id, blob)?))
    }

    fn attachment<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |store| store.attachment(name))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Checks every block: files and bytes read, and every problem found. `progress(done, total)` counts bytes.
    #[pyo3(signature = (progress = None))]
    fn verify<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut failed = None;
        let report = self.with(py, |store| {
            store.verify(&mut |done, total| {
                if let (Some(progress), None) = (&progress, &failed) {
                    failed = Python::attach(|py| progress.call1(py, (done, total)).err());
                }
            })
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        let problems: Vec<Bound<'py, PyDict>> = report
            .problems
            .iter()
            .map(|problem| {
                let entry = PyDict::new(py);
                entry.set_item("path", problem.path.to_string_lossy())?;
                entry.set_item("offset", problem.offset)?;
                entry.set_item("message", &problem.message)?;
                Ok(entry)
            })
            .collect::<PyResult<_>>()?;
        let out = PyDict::new(py);
        out.set_item("files", report.files)?;
        out.set_item("bytes", report.bytes)?;
        out.set_item("problems", problems)?;
        Ok(out)
    }

    /// Releases the lock; everything after this raises.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.lock().take()));
    }
}
