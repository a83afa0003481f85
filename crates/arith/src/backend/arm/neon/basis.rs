//! Basis conversion, four residues at a time.

use crate::backend::portable::basis::fraction;

crate::backend::shared::basis::double_conversion!("neon");

/// The upper halves of products of 52 bits by 52, one at a time: there is no vector of such
/// products.
#[inline]
fn upper_halves(y: [u64; LANES], ratio: u64) -> [u64; LANES] {
    y.map(|y| fraction(y, ratio))
}
