//! Facts about a collection enter, the bytes of an authenticated state leave, and back. Key owner's side.

use std::collections::HashMap;

use ciphervec_he_secret::wire::KeyId;
use ciphervec_owner::protect::consumed::{Consumed, Written};
use ciphervec_owner::protect::state::{self, SegmentFacts, SetAside, StateRecord};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::Raise;

/// The hash that stands for a segment in a state; `digests` has the BLAKE3 of those blobs that are covered.
#[pyfunction]
pub fn state_leaf<'py>(
    py: Python<'py>,
    segment_id: [u8; 16],
    rows: u32,
    deleted: Vec<u32>,
    blobs: Vec<String>,
    digests: HashMap<String, [u8; 32]>,
) -> Bound<'py, PyBytes> {
    let digests: Vec<_> = digests.into_iter().collect();
    let facts =
        SegmentFacts { id: &segment_id, rows, deleted: &deleted, blobs: &blobs, digests: &digests };
    PyBytes::new(py, &state::leaf(&facts))
}

/// The hash of segments' leaves, 32 bytes each, in their order.
#[pyfunction]
pub fn state_digest<'py>(py: Python<'py>, leaves: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &py.detach(|| state::digest(leaves)))
}

/// The list of consumed segments `before` (empty: none) with what is in `other`, such a list, and in `written`: writer, time,
/// segment id.
#[pyfunction]
#[pyo3(signature = (before, written, other = None))]
pub fn consumed_after<'py>(
    py: Python<'py>,
    before: &[u8],
    written: Vec<(String, u64, [u8; 16])>,
    other: Option<&[u8]>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut consumed = Consumed::from_bytes(before).map_err(Raise::raise)?;
    if let Some(other) = other {
        consumed.merge(Consumed::from_bytes(other).map_err(Raise::raise)?);
    }
    for (writer, time, segment) in written {
        consumed.add(Written { writer, time, segment });
    }
    Ok(PyBytes::new(py, &consumed.to_bytes()))
}

/// What a state says, as a Python dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Facts {
    origin: [u8; 16],
    lineage: [u8; 16],
    begun: u64,
    sequence: u64,
    epoch: u32,
    segments: u32,
    segments_digest: [u8; 32],
    description: [u8; 32],
    evaluation: [u8; 32],
    key_pair: [u8; 32],
    ancestors: Vec<[u8; 16]>,
    aside: Vec<([u8; 16], Vec<u32>)>,
    routing: [u8; 32],
    consumed: [u8; 32],
    quarantine: Vec<[u8; 16]>,
}

impl Facts {
    /// The record that the owner's key is to authenticate.
    pub fn record(self) -> StateRecord {
        let aside = self.aside.into_iter();
        StateRecord {
            key: KeyId::default(),
            origin: self.origin,
            lineage: self.lineage,
            begun: self.begun,
            sequence: self.sequence,
            epoch: self.epoch,
            segments: self.segments,
            segments_digest: self.segments_digest,
            description: self.description,
            evaluation: self.evaluation,
            key_pair: self.key_pair,
            ancestors: self.ancestors,
            aside: aside.map(|(segment, rows)| SetAside { segment, rows }).collect(),
            routing: self.routing,
            consumed: self.consumed,
            quarantine: self.quarantine,
        }
    }
}

/// The same the other way round, with the `key` that it was authenticated under.
pub fn facts<'py>(py: Python<'py>, record: &StateRecord) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let bytes = |data: &[u8]| PyBytes::new(py, data);
    out.set_item("key", record.key.to_string())?;
    out.set_item("origin", bytes(&record.origin))?;
    out.set_item("lineage", bytes(&record.lineage))?;
    out.set_item("begun", record.begun)?;
    out.set_item("sequence", record.sequence)?;
    out.set_item("epoch", record.epoch)?;
    out.set_item("segments", record.segments)?;
    out.set_item("segments_digest", bytes(&record.segments_digest))?;
    out.set_item("description", bytes(&record.description))?;
    out.set_item("evaluation", bytes(&record.evaluation))?;
    out.set_item("key_pair", bytes(&record.key_pair))?;
    let ancestors: Vec<_> = record.ancestors.iter().map(|name| bytes(name)).collect();
    out.set_item("ancestors", ancestors)?;
    let aside: Vec<_> =
        record.aside.iter().map(|one| (bytes(&one.segment), one.rows.clone())).collect();
    out.set_item("aside", aside)?;
    out.set_item("routing", bytes(&record.routing))?;
    out.set_item("consumed", bytes(&record.consumed))?;
    let quarantine: Vec<_> = record.quarantine.iter().map(|id| bytes(id)).collect();
    out.set_item("quarantine", quarantine)?;
    Ok(out)
}
