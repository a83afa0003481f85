//! Layout of a matrix of words: the rows of a tile.

/// Rows in a full tile.
pub const TILE: usize = 64;
