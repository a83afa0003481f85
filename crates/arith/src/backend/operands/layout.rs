//! Layouts: tiles of a matrix of words, and strips of packed 50-bit residues. Both sides.

/// Rows of a matrix of words in a full tile.
pub const TILE: usize = 64;

/// Coefficients in a strip: so few that at 128 nodes a query's strip (16 KiB) stays in the
/// first-level cache while the packed residues stream past it.
pub const STRIP: usize = 8;
/// Bytes of a packed strip: 8 residues of 50 bits.
pub const STRIP_BYTES: usize = 50;
/// Blocks that lie side by side and are scanned together, so that a query is read once for all of
/// them.
pub const GROUP: usize = 4;
