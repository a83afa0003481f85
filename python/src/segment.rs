//! What one sealing call made: the server's part and the owner's part, as one object that travels. Both sides hold it.

use ciphervec_arith::AlignedBytes;
use ciphervec_owner::SegmentId;
use ciphervec_owner::search::SealedSegment;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bundle;
use crate::errors::{CorruptData, InvalidInput};
use crate::keys::grouped;

const MAGIC: [u8; 4] = *b"CVSS";
const WHAT: &str = "a sealed segment";

/// The 16 bytes of a segment's id.
///
/// # Errors
/// `InvalidInput` for another length.
pub fn id(bytes: &[u8]) -> PyResult<SegmentId> {
    let array = <[u8; 16]>::try_from(bytes).map_err(|_| {
        InvalidInput::new_err(format!("a segment id has 16 bytes, got {}", bytes.len()))
    })?;
    Ok(SegmentId(array))
}

/// An immutable batch of sealed vectors. `segment` is for the server, `sidecar` for the owner, wherever it is kept.
#[pyclass(name = "SealedSegment", module = "ciphervec", frozen)]
pub struct PySealedSegment(pub SealedSegment);

#[pymethods]
impl PySealedSegment {
    /// Its name, 16 bytes, which is the nonce it was sealed under.
    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.id.0)
    }

    /// Vectors sealed.
    #[getter]
    fn rows(&self) -> u32 {
        self.0.rows
    }

    /// What `ServerIndex.add` takes.
    #[getter]
    fn segment<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.segment)
    }

    /// Ids and norms, encrypted: what `Owner.attach` takes.
    #[getter]
    fn sidecar<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.sidecar)
    }

    /// Bytes of the server's part.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.segment.len()
    }

    /// Both parts.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let head = self.head();
        PyBytes::new(
            py,
            &py.detach(|| bundle::pack(MAGIC, &[&head, &self.0.segment, &self.0.sidecar])),
        )
    }

    /// Reads what `to_bytes` wrote. Raises CorruptData or UnsupportedVersion.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        py.detach(|| {
            let corrupt =
                || CorruptData::new_err(format!("{WHAT}: id, rows, level and two parts expected"));
            let parts = bundle::unpack(WHAT, MAGIC, data)?;
            let [head, segment, sidecar] = parts[..] else { return Err(corrupt()) };
            let Ok([id @ .., a, b, c, d, level]) = <[u8; 21]>::try_from(head) else {
                return Err(corrupt());
            };
            Ok(Self(SealedSegment {
                id: SegmentId(id),
                rows: u32::from_le_bytes([a, b, c, d]),
                level,
                segment: AlignedBytes::from_slice(segment),
                sidecar: sidecar.to_vec(),
            }))
        })
    }

    fn __repr__(&self) -> String {
        let (rows, size) = (grouped(self.0.rows as usize), grouped(self.0.segment.len()));
        format!("<ciphervec.SealedSegment {}, {rows} rows, {size} bytes>", self.0.id)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py()),)))
    }
}

impl PySealedSegment {
    fn head(&self) -> Vec<u8> {
        [&self.0.id.0[..], &self.0.rows.to_le_bytes(), &[self.0.level]].concat()
    }
}
