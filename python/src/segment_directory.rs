//! Sidecars enter, places, ids and norms leave: what the owner knows of every segment. Owner only.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ciphervec_owner::protect::consumed::Consumed;
use ciphervec_owner::search::{Origin, SegmentDirectory};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::errors::Raise;
use crate::ids::{self, PyId};
use crate::segment;

type Place<'py> = (Bound<'py, PyBytes>, u32);

/// Which id lies where.
#[pyclass(name = "SegmentDirectory", module = "ciphervec._native", frozen)]
pub struct PySegmentDirectory(RwLock<SegmentDirectory>);

impl PySegmentDirectory {
    /// The directory, for as long as nobody changes it.
    pub fn read(&self) -> RwLockReadGuard<'_, SegmentDirectory> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory, to be changed.
    pub fn write(&self) -> RwLockWriteGuard<'_, SegmentDirectory> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PySegmentDirectory {
    #[new]
    fn new() -> Self {
        Self(RwLock::new(SegmentDirectory::new()))
    }

    /// Takes no appended segment from now on that is in this list of consumed ones.
    fn expect_unconsumed(&self, py: Python<'_>, consumed: &[u8]) -> PyResult<()> {
        let consumed = Consumed::from_bytes(consumed).map_err(Raise::raise)?;
        py.detach(|| self.write().expect_unconsumed(consumed));
        Ok(())
    }

    /// Passes over a segment that does not open.
    fn refuse(&self, py: Python<'_>, segment_id: &[u8]) -> PyResult<()> {
        let id = segment::id(segment_id)?;
        py.detach(|| self.write().refuse(id));
        Ok(())
    }

    /// Segments that are passed over.
    fn refused<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.read().refused().iter().map(|id| PyBytes::new(py, &id.0)).collect()
    }

    /// Passes over a segment that failed a check, until it is released.
    fn quarantine(&self, py: Python<'_>, segment_id: &[u8]) -> PyResult<()> {
        let id = segment::id(segment_id)?;
        py.detach(|| self.write().quarantine(id));
        Ok(())
    }

    /// Takes a segment out of quarantine; whether it was there.
    fn release(&self, py: Python<'_>, segment_id: &[u8]) -> PyResult<bool> {
        let id = segment::id(segment_id)?;
        Ok(py.detach(|| self.write().release(id)))
    }

    /// Segments in quarantine.
    fn quarantined<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.read().quarantined().iter().map(|id| PyBytes::new(py, &id.0)).collect()
    }

    /// Ids that two of the owner's segments have, of which the later row counts.
    fn repeated<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.read().repeated().iter().map(|name| ids::to_python(py, name)).collect()
    }

    /// Notes that the owner has authenticated every segment.
    fn authenticate(&self, py: Python<'_>) {
        py.detach(|| self.write().authenticate());
    }

    /// "owner", "previous", or "writer" with its name; None for an unknown segment.
    fn origin(&self, segment_id: &[u8]) -> PyResult<Option<(&'static str, Option<String>)>> {
        let id = segment::id(segment_id)?;
        Ok(self.read().origin(id).map(|origin| match origin {
            Origin::Owner => ("owner", None),
            Origin::Previous => ("previous", None),
            Origin::Writer(name) => ("writer", Some(name.clone())),
        }))
    }

    /// Who sealed a segment of a writer's, and when in milliseconds since 1970; zero where it does not say. None for others.
    fn written(&self, segment_id: &[u8]) -> PyResult<Option<(String, u64)>> {
        let known = self.read().written(segment::id(segment_id)?).cloned();
        Ok(known.map(|written| (written.writer, written.time)))
    }

    /// Forgets a segment.
    fn remove(&self, py: Python<'_>, segment_id: &[u8]) -> PyResult<bool> {
        let id = segment::id(segment_id)?;
        Ok(py.detach(|| self.write().remove(id)))
    }

    /// Leaves a row out from now on; its place, or None when the id is unknown.
    fn mark_deleted<'py>(&self, py: Python<'py>, id: PyId) -> Option<Place<'py>> {
        let place = py.detach(|| self.write().mark_deleted(&id.0));
        place.map(|(segment, row)| (PyBytes::new(py, &segment.0), row))
    }

    fn locate<'py>(&self, py: Python<'py>, id: PyId) -> Option<Place<'py>> {
        let place = py.detach(|| self.read().locate(&id.0));
        place.map(|(segment, row)| (PyBytes::new(py, &segment.0), row))
    }

    /// As `locate`, for many ids.
    fn locate_many<'py>(&self, py: Python<'py>, ids: Vec<PyId>) -> Vec<Option<Place<'py>>> {
        let places = py.detach(|| {
            let directory = self.read();
            ids.iter().map(|id| directory.locate(&id.0)).collect::<Vec<_>>()
        });
        places
            .into_iter()
            .map(|place| place.map(|(segment, row)| (PyBytes::new(py, &segment.0), row)))
            .collect()
    }

    /// Every id, in the order of segments and rows.
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let directory = self.read();
        let names: PyResult<Vec<_>> =
            directory.records().map(|(id, _, _)| ids::to_python(py, id)).collect();
        PyList::new(py, names?)
    }

    /// Rows by the level that they are packed for.
    fn levels(&self) -> BTreeMap<u8, u64> {
        let mut rows = BTreeMap::<u8, u64>::new();
        for (_, count, level) in self.read().segments() {
            *rows.entry(level).or_default() += u64::from(count);
        }
        rows
    }

    fn segment_ids<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.read().segments().map(|(id, _, _)| PyBytes::new(py, &id.0)).collect()
    }

    /// Per segment, the id of each row, None where the row is deleted.
    fn rows<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, Bound<'py, PyList>)>> {
        let directory = self.read();
        let list = |id: ciphervec_owner::SegmentId| {
            let names = directory.names(id).into_iter().flatten();
            let names: PyResult<Vec<_>> =
                names.map(|name| name.map(|id| ids::to_python(py, id)).transpose()).collect();
            Ok((PyBytes::new(py, &id.0), PyList::new(py, names?)?))
        };
        directory.segments().map(|(id, _, _)| list(id)).collect()
    }

    /// The same of one segment; None where it is unknown.
    fn names<'py>(
        &self,
        py: Python<'py>,
        segment_id: &[u8],
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let (id, directory) = (segment::id(segment_id)?, self.read());
        let Some(names) = directory.names(id) else { return Ok(None) };
        let names: PyResult<Vec<_>> =
            names.map(|name| name.map(|id| ids::to_python(py, id)).transpose()).collect();
        PyList::new(py, names?).map(Some)
    }

    /// What was taken off a segment's rows before they were sealed; empty where that is nothing, or the segment is unknown.
    fn centre<'py>(&self, py: Python<'py>, segment_id: [u8; 16]) -> Bound<'py, PyArray1<f32>> {
        let directory = self.read();
        PyArray1::from_slice(
            py,
            directory.centre(ciphervec_owner::SegmentId(segment_id)).unwrap_or_default(),
        )
    }

    /// The centres of all segments with rows that count, each once.
    fn centres<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<f32>>> {
        self.read().centres().into_iter().map(|centre| PyArray1::from_slice(py, centre)).collect()
    }

    /// That of the latest of the owner's segments that has one; empty where none has.
    fn centre_in_use<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, self.read().centre_in_use())
    }

    /// The lengths that the vectors of these ids had, less their centre; 1 where the metric does not keep them, 0 for an unknown id.
    fn norms<'py>(&self, py: Python<'py>, ids: Vec<PyId>) -> Bound<'py, PyArray1<f64>> {
        let directory = self.read();
        PyArray1::from_iter(py, ids.iter().map(|id| directory.norm(&id.0).unwrap_or(0.0)))
    }

    fn __contains__(&self, id: &Bound<'_, PyAny>) -> bool {
        id.extract::<PyId>().is_ok_and(|id| self.read().locate(&id.0).is_some())
    }

    fn __len__(&self) -> usize {
        self.read().len()
    }
}
