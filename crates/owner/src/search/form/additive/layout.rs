//! Layout of an index's vectors, chosen by whoever encrypts them.

use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::similarity::additive::{Layout, VectorSpec};
pub use ciphervec::search::form::additive::layout::*;

/// A few rows are laid out each by itself, in ciphertexts of their own, where that takes this many times fewer of them: an added
/// row is then small and quick to write, though the server spends about four times as long on it as on a block of lanes.
const FEWER: usize = 8;

/// Lanes for galleries, horizontal for a few rows, elements where a message of the scheme holds one number only.
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
