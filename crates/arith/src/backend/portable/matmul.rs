//! Wrapping inner products of a tile of `[dim][w]` words with queries, one word at a time.

pub(crate) fn tile_u32(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
    out.fill(0);
    for (row, &q) in tile.chunks_exact(4 * w).zip(query) {
        for (y, word) in out.iter_mut().zip(row.as_chunks::<4>().0) {
            *y = y.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(q as u32));
        }
    }
}

pub(crate) fn tile_u24(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
    out.fill(0);
    for (row, &q) in tile.chunks_exact(3 * w).zip(query) {
        for (y, &[a, b, c]) in out.iter_mut().zip(row.as_chunks::<3>().0) {
            *y = y.wrapping_add(u32::from_le_bytes([a, b, c, 0]).wrapping_mul(q as u32));
        }
    }
    out.iter_mut().for_each(|y| *y &= 0xff_ffff);
}

pub(crate) fn tile_u64(tile: &[u8], w: usize, query: &[i64], out: &mut [u64]) {
    out.fill(0);
    for (row, &q) in tile.chunks_exact(8 * w).zip(query) {
        for (y, word) in out.iter_mut().zip(row.as_chunks::<8>().0) {
            *y = y.wrapping_add(u64::from_le_bytes(*word).wrapping_mul(q as u64));
        }
    }
}

/// Queries in a block: a row of the tile stays in the first-level cache for any number.
pub(crate) const QUERIES: usize = 16;

/// One tile and packed queries (blocks of up to `block`, each `[dim][queries of the block]`), one
/// output slice a query.
macro_rules! batch {
    ($name:ident, $bytes:literal, $query:ty, $word:ty, $wide:expr, $mask:expr) => {
        pub(crate) fn $name(
            tile: &[u8],
            w: usize,
            packed: &[$query],
            block: usize,
            out: &mut [&mut [$word]],
        ) {
            let dim = tile.len() / ($bytes * w);
            for (queries, out) in packed.chunks(block * dim.max(1)).zip(out.chunks_mut(block)) {
                let rows = tile.chunks_exact($bytes * w).zip(queries.chunks_exact(out.len()));
                for (row, q) in rows {
                    for (y, &q) in out.iter_mut().zip(q) {
                        for (y, word) in y.iter_mut().zip(row.as_chunks::<$bytes>().0) {
                            *y = y.wrapping_add($wide(*word).wrapping_mul(q as $word));
                        }
                    }
                }
                out.iter_mut().flat_map(|y| y.iter_mut()).for_each(|y| *y &= $mask);
            }
        }
    };
}

batch!(batch_u32, 4, i32, u32, u32::from_le_bytes, u32::MAX);
batch!(batch_u24, 3, i32, u32, |[a, b, c]: [u8; 3]| u32::from_le_bytes([a, b, c, 0]), 0xff_ffff);
batch!(batch_u64, 8, i64, u64, u64::from_le_bytes, u64::MAX);
