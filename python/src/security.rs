//! The entries of a `security()` dictionary that say what attacks on a parameter set cost.

use ciphervec_he_secret::params::{COST_MODEL, Estimate};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What attacks cost, in each model: `core_svp`, `guidelines`, `quantum_core_svp` and the `model` in words. Nothing without
/// a lattice.
pub fn put_estimate(out: &Bound<'_, PyDict>, estimate: Option<Estimate>) -> PyResult<()> {
    let Some(found) = estimate else { return Ok(()) };
    out.set_item("core_svp", found.core_svp)?;
    out.set_item("guidelines", found.guidelines)?;
    out.set_item("quantum_core_svp", found.quantum_core_svp)?;
    out.set_item("model", COST_MODEL)
}
