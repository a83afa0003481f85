//! What the owner's half knows of rows, for Python: which there are, where, around what, and whether they count.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ciphervec_client::OwnersHalf;
use ciphervec_owner::protect::consumed::Consumed;
use ciphervec_owner::protect::filter::FilterTag;
use ciphervec_owner::search::{OpenedSidecar, Origin, SealedSidecar, Standing};
use ciphervec_owner::{Id, SegmentId};
use numpy::{PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::errors::{InvalidInput, Raise};
use crate::ids::{self, PyId};
use crate::{arrays, runtime, segment};

/// Where a row is.
type Spot<'py> = (Bound<'py, PyBytes>, u32);
/// A vector.
type Row<'py> = Bound<'py, PyArray1<f32>>;

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

/// What an owner's half knows of the rows of its segments.
#[pyclass(name = "KnownRows", module = "ciphervec._native", frozen, subclass)]
pub struct PyKnownRows(pub Arc<OwnersHalf>);

impl PyKnownRows {
    /// The keyed hash of a filterable field's value.
    pub fn tag(&self, field: &str, value: &[u8]) -> FilterTag {
        self.0.owner().filter_tag(field, value)
    }
}

fn spots<'py>(
    py: Python<'py>,
    places: impl IntoIterator<Item = (SegmentId, u32)>,
) -> Vec<Spot<'py>> {
    places.into_iter().map(|(segment, row)| (PyBytes::new(py, &segment.0), row)).collect()
}

/// The ids of a segment's rows, None where one is deleted.
fn listed<'a, 'py>(
    py: Python<'py>,
    names: impl IntoIterator<Item = Option<&'a Id>>,
) -> PyResult<Bound<'py, PyList>> {
    let names = names.into_iter().map(|name| name.map(|id| ids::to_python(py, id)).transpose());
    PyList::new(py, names.collect::<PyResult<Vec<_>>>()?)
}

#[pymethods]
impl PyKnownRows {
    /// What rows are taken less before they are sealed, (dimension,); (0,) where that is nothing. Distances stay as they are, and
    /// their errors don't, which grow with the distance from zero.
    #[getter]
    fn center<'py>(&self, py: Python<'py>) -> Row<'py> {
        PyArray1::from_vec(py, self.0.center())
    }

    /// The same for these rows, float32 (n, d), which choose one where they lie far from zero, or from the centers that there are.
    fn center_for<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Row<'py>> {
        let rows = arrays::rows(&rows, self.0.owner().spec().dimension())?;
        Ok(PyArray1::from_vec(py, py.detach(|| self.0.center_for(rows))))
    }

    /// Those of all segments with rows that count: one, but where rows came before it was chosen, or writers have cards of another
    /// time.
    fn centers<'py>(&self, py: Python<'py>) -> Vec<Row<'py>> {
        self.0.read().centres().into_iter().map(|one| PyArray1::from_slice(py, one)).collect()
    }

    /// That of one segment.
    fn center_of<'py>(&self, py: Python<'py>, segment_id: [u8; 16]) -> Row<'py> {
        let known = self.0.read();
        PyArray1::from_slice(py, known.centre(SegmentId(segment_id)).unwrap_or_default())
    }

    /// Raise DuplicateId when one of `ids` is attached already.
    fn refuse_known(&self, py: Python<'_>, ids: Vec<PyId>) -> PyResult<()> {
        let names = ids::unwrap(ids);
        py.detach(|| self.0.refuse_known(&names)).map_err(Raise::raise)
    }

    /// The (segment id, row) of every id. Raises UnknownId.
    fn places<'py>(&self, py: Python<'py>, ids: Vec<PyId>) -> PyResult<Vec<Spot<'py>>> {
        let names = ids::unwrap(ids);
        let places = py.detach(|| self.0.places(&names)).map_err(Raise::raise)?;
        Ok(spots(py, places))
    }

    /// The (segment id, row) of every id; None for one that is not here.
    fn locate<'py>(&self, py: Python<'py>, ids: Vec<PyId>) -> Vec<Option<Spot<'py>>> {
        let names = ids::unwrap(ids);
        let places = py.detach(|| {
            let known = self.0.read();
            names.iter().map(|id| known.locate(id)).collect::<Vec<_>>()
        });
        places.into_iter().map(|place| spots(py, place).pop()).collect()
    }

    /// Leaves these rows out of every answer from now on; their places.
    #[pyo3(name = "_forget")]
    fn forget<'py>(&self, py: Python<'py>, ids: Vec<PyId>) -> PyResult<Vec<Spot<'py>>> {
        let names = ids::unwrap(ids);
        let places = py.detach(|| self.0.forget(&names)).map_err(Raise::raise)?;
        Ok(spots(py, places))
    }

    /// Open sidecars, of segments, with their wraps and the rows listed, on all threads. `take_in` raises what keeps one from
    /// opening.
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
        let opened = runtime::detached(py, || self.0.owner().open_sidecars(&parts));
        Ok(opened.into_iter().map(|one| PyOpenedSidecar(Mutex::new(Some(one)))).collect())
    }

    /// As `attach`, of a sidecar that `open_sidecars` gave. `standing` says what becomes of ids that are known: `new` (an error
    /// where the owner sealed both), `stored` (the later row counts), `appended` (the authenticated row counts). Rows in `aside`
    /// don't count.
    #[pyo3(signature = (opened, deleted_rows = Vec::new(), *, standing = "new", aside = Vec::new()))]
    fn take_in(
        &self,
        py: Python<'_>,
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
            let mut guard = self.0.write();
            let (known, owner) = (&mut *guard, self.0.owner());
            runtime::run(|| known.attach_opened(owner, opened, (&deleted_rows, &aside), standing))
        });
        attached.map_err(Raise::raise)
    }

    /// Take no appended segment from now on that is in this list of consumed ones.
    fn expect_unconsumed(&self, py: Python<'_>, consumed: &[u8]) -> PyResult<()> {
        let consumed = Consumed::from_bytes(consumed).map_err(Raise::raise)?;
        py.detach(|| self.0.write().expect_unconsumed(consumed));
        Ok(())
    }

    /// Who sealed a writer's segment, and when in milliseconds since 1970; zero where it does not say. `wrap` gives the wrap, and
    /// is called where the segment is not attached. Raises WrongKey, CorruptData.
    fn written(&self, segment_id: &[u8], wrap: &Bound<'_, PyAny>) -> PyResult<(String, u64)> {
        let id = segment::id(segment_id)?;
        let known = self.0.read().written(id).cloned();
        let written = match known {
            Some(written) => written,
            None => {
                let wrap: PyBackedBytes = wrap.call0()?.extract()?;
                self.0.owner().written(id, &wrap).map_err(Raise::raise)?
            }
        };
        Ok((written.writer, written.time))
    }

    /// The name of the writer who sealed a segment; None if it was the owner.
    fn writer_of(&self, segment_id: &[u8]) -> PyResult<Option<String>> {
        Ok(match self.0.read().origin(segment::id(segment_id)?) {
            Some(Origin::Writer(name)) => Some(name.clone()),
            _ => None,
        })
    }

    /// Pass over a segment that failed a check, until it is released.
    fn quarantine(&self, py: Python<'_>, segment_id: &[u8]) -> PyResult<()> {
        let id = segment::id(segment_id)?;
        py.detach(|| self.0.write().quarantine(id));
        Ok(())
    }

    /// Take a segment out of quarantine; whether it was there.
    fn release(&self, py: Python<'_>, segment_id: &[u8]) -> PyResult<bool> {
        let id = segment::id(segment_id)?;
        Ok(py.detach(|| self.0.write().release(id)))
    }

    /// Segments in quarantine.
    fn quarantined<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.0.read().quarantined().iter().map(|id| PyBytes::new(py, &id.0)).collect()
    }

    /// The segments with rows that nothing is checked about; sealed again they have sums.
    fn unchecked<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.0.read().unchecked(self.0.owner()).map(|id| PyBytes::new(py, &id.0)).collect()
    }

    /// The ids attached and not deleted, in the order of insertion.
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let known = self.0.read();
        let names: PyResult<Vec<_>> =
            known.records().map(|(id, _, _)| ids::to_python(py, id)).collect();
        PyList::new(py, names?)
    }

    /// Rows by the level that they are packed for.
    fn levels(&self) -> BTreeMap<u8, u64> {
        let mut rows = BTreeMap::<u8, u64>::new();
        for (_, count, level) in self.0.read().segments() {
            *rows.entry(level).or_default() += u64::from(count);
        }
        rows
    }

    /// Per segment, the id of each row, None where the row is deleted.
    fn row_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (known, out) = (self.0.read(), PyDict::new(py));
        for (id, ..) in known.segments() {
            out.set_item(
                PyBytes::new(py, &id.0),
                listed(py, known.names(id).into_iter().flatten())?,
            )?;
        }
        Ok(out)
    }

    /// The same of one segment; None where it is unknown.
    fn names<'py>(
        &self,
        py: Python<'py>,
        segment_id: &[u8],
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let (id, known) = (segment::id(segment_id)?, self.0.read());
        known.names(id).map(|names| listed(py, names)).transpose()
    }

    fn __contains__(&self, id: &Bound<'_, PyAny>) -> bool {
        id.extract::<PyId>().is_ok_and(|id| self.0.read().locate(&id.0).is_some())
    }

    fn __len__(&self) -> usize {
        self.0.read().len()
    }

    /// The rows of a segment that is attached, or those numbered, at unit length, to within the precision of the seal: float32
    /// (n, d).
    ///
    /// Deleted rows included; under `hamming` exactly -1 and +1. `rescale` gives them their lengths again. In modes `sealed` and
    /// `sealed-query`, and from outdated segments, they carry noise of the encryption and are for the key owner alone. Raises
    /// WrongKey, CorruptData, TamperedAnswer for a segment that is not what was sealed, InvalidInput for one in quarantine.
    #[pyo3(signature = (segment, rows = None))]
    fn unseal<'py>(
        &self,
        py: Python<'py>,
        segment: &[u8],
        rows: Option<Vec<usize>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let owner = self.0.owner();
        let rows = py.detach(|| {
            let guard = self.0.read();
            let known = &*guard;
            runtime::run(|| owner.unseal_rows(segment, rows.as_deref(), known))
        });
        arrays::matrix(py, rows.map_err(Raise::raise)?, owner.spec().dimension())
    }

    /// Unsealed rows of these ids where they were put in: with their lengths, which `ip` and `l2` keep, and their center; else at
    /// unit length.
    fn rescale<'py>(
        &self,
        py: Python<'py>,
        ids: Vec<PyId>,
        directions: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let dimension = self.0.owner().spec().dimension();
        let mut rows = arrays::rows(&directions, dimension)?.to_vec();
        let names = ids::unwrap(ids);
        py.detach(|| self.0.rescale(&names, &mut rows));
        arrays::matrix(py, rows, dimension)
    }
}
