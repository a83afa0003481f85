//! Layout of an index's vectors: a description and a row count enter, how coordinates lie in ciphertexts leaves. Both sides.

use crate::error::Result;
use crate::index::mode::Precision;
use crate::index::spec::IndexSpec;
use crate::similarity::additive::{self, Layout, VectorSpec};

/// A few rows are laid out each by itself, in ciphertexts of their own, where that takes this many times fewer of them: an added
/// row is then small and quick to write, though the server spends about four times as long on it as on a block of lanes.
#[cfg(feature = "client")]
const FEWER: usize = 8;

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

/// Lanes for galleries, horizontal for a few rows, elements where a message of the scheme holds one number only.
#[cfg(feature = "client")]
pub fn choose(spec: &IndexSpec, rows: usize, message_bits: u32, packs: bool) -> Result<VectorSpec> {
    if !packs {
        return similarity(spec, Layout::Elements);
    }
    let ciphertexts = |layout| -> Result<(VectorSpec, usize)> {
        let spec = similarity(spec, layout)?;
        let packing = spec.packing(message_bits)?;
        Ok((spec, packing.rows() * packing.blocks(rows)))
    };
    let (lanes, many) = ciphertexts(Layout::Lanes)?;
    let (horizontal, few) = ciphertexts(Layout::Horizontal)?;
    Ok(if few * FEWER <= many { horizontal } else { lanes })
}
