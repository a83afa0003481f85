//! Word layout: how many rows of a matrix a tile has. The server's side.

/// Rows in a full tile.
pub const TILE: usize = 64;
