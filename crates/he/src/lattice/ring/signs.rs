//! Signs of rows, for both sides: public, drawn from a segment's name, so independent of its rows.
//!
//! Row v of a segment is packed as s_v x_v. The noise of a block's scores is the block's polynomials
//! times the tree's noise; with random signs it is white over the rows whatever these have in
//! common, which is what lets a check of sums have one threshold (`docs/sealed.md`, section 4.5).

use crate::lattice::SegmentId;
use ciphervec_arith::sample::Stream;

const ROWS: &str = "ciphervec v1 row-signs";
const DIMENSIONS: &str = "ciphervec v1 dimension-signs";

/// The sign of each row of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowSigns {
    /// A bit a row, set where the row is negated; none of them where no row is.
    bits: Vec<u8>,
}

impl RowSigns {
    /// The signs of segment `id`.
    pub fn of(id: SegmentId, rows: usize) -> Self {
        let mut bits = vec![0; rows.div_ceil(8)];
        Stream::new(&blake3::derive_key(ROWS, &id.0), 0).fill(&mut bits);
        RowSigns { bits }
    }

    /// Those of a segment sealed before there were any: all rows as they are.
    pub fn positive() -> Self {
        RowSigns { bits: Vec::new() }
    }

    /// Whether a row is negated.
    pub fn negates(&self, row: usize) -> bool {
        self.bits.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1)
    }
}

/// The sign of each dimension, 1 or −1, of an index under these public masks.
pub fn dimension_signs(mask_seed: &[u8; 32], dimension: usize) -> Vec<i64> {
    let mut bits = vec![0; dimension.div_ceil(8)];
    Stream::new(&blake3::derive_key(DIMENSIONS, mask_seed), 0).fill(&mut bits);
    (0..dimension).map(|i| 1 - 2 * i64::from(bits[i / 8] >> (i % 8) & 1)).collect()
}
