//! How rows of a dimension are packed into blocks at every level of the query tree, for models of cost. Public numbers.

use ciphervec_he_secret::lattice::ring::Layout;
use ciphervec_owner::{IndexSpec, Metric, Mode, Precision};
use pyo3::prelude::*;

use crate::errors::Raise;

/// Of every level of the query tree that vectors of so many dimensions can be packed for, from 0: nodes of the tree, rows a
/// block, bytes a block. Raises InvalidInput for a dimension that no index has.
#[pyfunction]
pub fn ring_layouts(dimension: u32) -> PyResult<Vec<(usize, usize, usize)>> {
    let spec = IndexSpec::new("any", dimension, Metric::Cosine, Mode::Sealed, Precision::Standard);
    let dimension = spec.map_err(Raise::raise)?.dimension();
    let level = |level| {
        let layout = Layout::new(dimension, level)?;
        let rows = layout.vectors_per_block();
        Ok((layout.nodes(), rows, layout.packed_len(rows)))
    };
    let levels: ciphervec_he_secret::Result<_> =
        (0..=Layout::top_level(dimension)).map(level).collect();
    levels.map_err(|error| ciphervec_owner::Error::from(error).raise())
}
