//! The description of an index's vectors as an additively homomorphic scheme takes it.

use crate::error::Result;
use crate::index::mode::Precision;
use crate::index::spec::IndexSpec;
use crate::similarity::additive::{self, Layout, VectorSpec};

/// Vectors of an index as an additively homomorphic scheme takes them.
pub fn similarity(spec: &IndexSpec, layout: Layout) -> Result<VectorSpec> {
    VectorSpec::new(spec.dimension() as u32, spec.metric(), precision(spec), layout)
}

/// What an additively homomorphic scheme calls the precision of an index.
pub fn precision(spec: &IndexSpec) -> additive::GridPrecision {
    match spec.precision() {
        Precision::Standard => additive::GridPrecision::Standard,
        Precision::Small => additive::GridPrecision::Small,
        Precision::Wide => additive::GridPrecision::High,
    }
}
