//! Rows to be encrypted, whose coordinates are made on demand.

use core::ops::Range;

/// Rows of quantised integers, produced on demand so that no second copy of the data is ever held.
pub trait Plaintext: Sync {
    /// How many rows there are.
    fn rows(&self) -> usize;
    /// Coordinates per row.
    fn dimension(&self) -> usize;
    /// Bytes to leave free before the sealed words, so that a header can go there without a copy of
    /// the words.
    fn headroom(&self) -> usize {
        0
    }
    /// The bytes that the rows are made from: they are hashed into the nonce.
    fn content(&self) -> &[u8];
    /// Writes the coordinates `dims` of `row` into `out`, whose length is that of `dims`.
    fn fill(&self, row: usize, dims: Range<usize>, out: &mut [i64]);
}
