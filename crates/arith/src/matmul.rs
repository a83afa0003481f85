//! A matrix of little-endian words in tiles and integer queries enter, wrapping inner products leave. The server's side.
//!
//! Tile layout: the rows (vectors) are grouped in tiles of [`TILE`]; the last tile has the remaining `w = rows % 64`.
//! A tile is `[dim][w]` words, so dimension `i` of all its rows lies together and the matrix has exactly `rows dim`
//! words. All kernels compute `y[v] = sum_i query[i] b_i[v]` modulo a power of two and run on the current rayon pool.

use rayon::prelude::*;

use crate::backend::{Backend, dispatch};

pub use crate::ring::{STRIP, STRIP_BYTES, pack50, ring_scan_strip, unpack50};

/// Rows in a full tile.
pub const TILE: usize = 64;

/// Tiles that one task takes at a time: enough to hide the hand-over, few enough to balance.
const TASK_TILES: usize = 16;

fn check(
    data: &[u8],
    word: usize,
    rows: usize,
    dim: usize,
    queries: usize,
    query_words: usize,
    out: usize,
) {
    assert_eq!(
        Some(data.len()),
        rows.checked_mul(dim).and_then(|n| n.checked_mul(word)),
        "matrix bytes"
    );
    assert_eq!(query_words, queries * dim, "query words");
    assert_eq!(out, queries * rows, "output words");
}

/// The number of row-major queries of `dim` words in `words` words that fill `out` words.
fn count(words: usize, dim: usize, out: usize, rows: usize) -> usize {
    words.checked_div(dim).or(out.checked_div(rows)).unwrap_or(0)
}

/// One output row range: tiles `first ..`, as many as the output holds rows for.
fn single<T: Send>(
    data: &[u8],
    word: usize,
    dim: usize,
    out: &mut [T],
    kernel: impl Fn(&[u8], usize, &mut [T]) + Sync,
) {
    let stride = word * dim;
    let task = |(i, part): (usize, &mut [T])| {
        let first = i * TASK_TILES * TILE;
        for (t, tile) in part.chunks_mut(TILE).enumerate() {
            let row = first + t * TILE;
            kernel(&data[row * stride..(row + tile.len()) * stride], tile.len(), tile);
        }
    };
    if rayon::current_num_threads() == 1 {
        out.chunks_mut(TASK_TILES * TILE).enumerate().for_each(task);
    } else {
        out.par_chunks_mut(TASK_TILES * TILE).enumerate().for_each(task);
    }
}

/// `out[v] = sum_i query[i] b_i[v] mod 2^32` over 4-byte words.
///
/// # Panics
/// When `data` is not `4 rows dim` bytes, `query` not `dim` or `out` not `rows` words.
pub fn scan_u32(data: &[u8], rows: usize, dim: usize, query: &[i32], out: &mut [u32]) {
    check(data, 4, rows, dim, 1, query.len(), out.len());
    let backend = Backend::current();
    single(data, 4, dim, out, |tile, w, y| dispatch::tile_u32(backend, tile, w, query, y));
}

/// `out[v] = sum_i query[i] b_i[v] mod 2^24` over 3-byte words.
///
/// # Panics
/// When `data` is not `3 rows dim` bytes, `query` not `dim` or `out` not `rows` words.
pub fn scan_u24(data: &[u8], rows: usize, dim: usize, query: &[i32], out: &mut [u32]) {
    check(data, 3, rows, dim, 1, query.len(), out.len());
    let backend = Backend::current();
    single(data, 3, dim, out, |tile, w, y| dispatch::tile_u24(backend, tile, w, query, y));
}

/// `out[v] = sum_i query[i] b_i[v] mod 2^64` over 8-byte words.
///
/// # Panics
/// When `data` is not `8 rows dim` bytes, `query` not `dim` or `out` not `rows` words.
pub fn scan_u64(data: &[u8], rows: usize, dim: usize, query: &[i64], out: &mut [u64]) {
    check(data, 8, rows, dim, 1, query.len(), out.len());
    let backend = Backend::current();
    single(data, 8, dim, out, |tile, w, y| dispatch::tile_u64(backend, tile, w, query, y));
}

/// [`scan_u32`] for several row-major queries; `out` is `[query][row]`.
///
/// # Panics
/// When a length does not fit the others.
pub fn scan_u32_batch(data: &[u8], rows: usize, dim: usize, queries: &[i32], out: &mut [u32]) {
    let nq = count(queries.len(), dim, out.len(), rows);
    check(data, 4, rows, dim, nq, queries.len(), out.len());
    for q in 0..nq {
        scan_u32(
            data,
            rows,
            dim,
            &queries[q * dim..(q + 1) * dim],
            &mut out[q * rows..(q + 1) * rows],
        );
    }
}

/// [`scan_u24`] for several row-major queries; `out` is `[query][row]`.
///
/// # Panics
/// When a length does not fit the others.
pub fn scan_u24_batch(data: &[u8], rows: usize, dim: usize, queries: &[i32], out: &mut [u32]) {
    let nq = count(queries.len(), dim, out.len(), rows);
    check(data, 3, rows, dim, nq, queries.len(), out.len());
    for q in 0..nq {
        scan_u24(
            data,
            rows,
            dim,
            &queries[q * dim..(q + 1) * dim],
            &mut out[q * rows..(q + 1) * rows],
        );
    }
}

/// [`scan_u64`] for several row-major queries; `out` is `[query][row]`.
///
/// # Panics
/// When a length does not fit the others.
pub fn scan_u64_batch(data: &[u8], rows: usize, dim: usize, queries: &[i64], out: &mut [u64]) {
    let nq = count(queries.len(), dim, out.len(), rows);
    check(data, 8, rows, dim, nq, queries.len(), out.len());
    for q in 0..nq {
        scan_u64(
            data,
            rows,
            dim,
            &queries[q * dim..(q + 1) * dim],
            &mut out[q * rows..(q + 1) * rows],
        );
    }
}
