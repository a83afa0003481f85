//! Wrapping inner products of a matrix of little-endian words, in tiles, with integer queries. For
//! the server.
//!
//! Tile layout: the rows (vectors) are grouped in tiles of [`TILE`]; the last tile has the
//! remaining `w = rows % 64`. A tile is `[dim][w]` words, so dimension `i` of all its rows lies
//! together and the matrix has exactly `rows dim` words. All kernels compute
//! `y[v] = sum_i query[i] b_i[v]` modulo a power of two and run on the current rayon pool.

use crate::parallel::*;

use crate::backend::{Backend, dispatch};

pub use crate::backend::operands::layout::TILE;

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
    if current_num_threads() == 1 {
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
    single(data, 4, dim, out, |tile, w, y| dispatch::matmul::tile_u32(backend, tile, w, query, y));
}

/// `out[v] = sum_i query[i] b_i[v] mod 2^24` over 3-byte words.
///
/// # Panics
/// When `data` is not `3 rows dim` bytes, `query` not `dim` or `out` not `rows` words.
pub fn scan_u24(data: &[u8], rows: usize, dim: usize, query: &[i32], out: &mut [u32]) {
    check(data, 3, rows, dim, 1, query.len(), out.len());
    let backend = Backend::current();
    single(data, 3, dim, out, |tile, w, y| dispatch::matmul::tile_u24(backend, tile, w, query, y));
}

/// `out[v] = sum_i query[i] b_i[v] mod 2^64` over 8-byte words.
///
/// # Panics
/// When `data` is not `8 rows dim` bytes, `query` not `dim` or `out` not `rows` words.
pub fn scan_u64(data: &[u8], rows: usize, dim: usize, query: &[i64], out: &mut [u64]) {
    check(data, 8, rows, dim, 1, query.len(), out.len());
    let backend = Backend::current();
    single(data, 8, dim, out, |tile, w, y| dispatch::matmul::tile_u64(backend, tile, w, query, y));
}

/// Queries packed for a back-end's register blocks: blocks of up to `block` queries, each
/// `[dim][queries of the block]`.
fn pack<Q: Copy>(queries: &[Q], dim: usize, block: usize) -> Vec<Q> {
    let mut packed = Vec::with_capacity(queries.len());
    for block in queries.chunks(block * dim.max(1)) {
        for i in 0..dim {
            packed.extend(block[i..].iter().step_by(dim).copied());
        }
    }
    packed
}

/// Every tile against all queries. `out` is `[query][row]`; a task owns the same rows of every
/// query.
pub(crate) fn batch<T: Send + Default + Copy>(
    data: &[u8],
    stride: usize,
    rows: usize,
    out: &mut [T],
    kernel: impl Fn(&[u8], usize, &mut [&mut [T]]) + Sync,
) {
    if out.is_empty() {
        return;
    }
    out.fill(T::default());
    let span = TASK_TILES * TILE;
    let mut tasks: Vec<Vec<&mut [T]>> = (0..rows.div_ceil(span)).map(|_| Vec::new()).collect();
    for row in out.chunks_exact_mut(rows) {
        for (task, part) in tasks.iter_mut().zip(row.chunks_mut(span)) {
            task.push(part);
        }
    }
    let run = |(i, mut parts): (usize, Vec<&mut [T]>)| {
        let count = parts[0].len();
        for start in (0..count).step_by(TILE) {
            let w = TILE.min(count - start);
            let mut tile: Vec<&mut [T]> =
                parts.iter_mut().map(|p| &mut p[start..start + w]).collect();
            let row = i * span + start;
            kernel(&data[row * stride..(row + w) * stride], w, &mut tile);
        }
    };
    if current_num_threads() == 1 {
        tasks.into_iter().enumerate().for_each(run);
    } else {
        tasks.into_par_iter().enumerate().for_each(run);
    }
}

/// [`scan_u32`] for several row-major queries; `out` is `[query][row]`.
///
/// # Panics
/// When a length does not fit the others.
pub fn scan_u32_batch(data: &[u8], rows: usize, dim: usize, queries: &[i32], out: &mut [u32]) {
    let nq = count(queries.len(), dim, out.len(), rows);
    check(data, 4, rows, dim, nq, queries.len(), out.len());
    let backend = Backend::current();
    let block = dispatch::matmul::query_block(backend);
    let packed = pack(queries, dim, block);
    batch(data, 4 * dim, rows, out, |tile, w, out| {
        dispatch::matmul::batch_u32(backend, tile, w, &packed, block, out);
    });
}

/// [`scan_u24`] for several row-major queries; `out` is `[query][row]`.
///
/// # Panics
/// When a length does not fit the others.
pub fn scan_u24_batch(data: &[u8], rows: usize, dim: usize, queries: &[i32], out: &mut [u32]) {
    let nq = count(queries.len(), dim, out.len(), rows);
    check(data, 3, rows, dim, nq, queries.len(), out.len());
    let backend = Backend::current();
    let block = dispatch::matmul::query_block(backend);
    let packed = pack(queries, dim, block);
    batch(data, 3 * dim, rows, out, |tile, w, out| {
        dispatch::matmul::batch_u24(backend, tile, w, &packed, block, out);
    });
}

/// [`scan_u64`] for several row-major queries; `out` is `[query][row]`.
///
/// # Panics
/// When a length does not fit the others.
pub fn scan_u64_batch(data: &[u8], rows: usize, dim: usize, queries: &[i64], out: &mut [u64]) {
    let nq = count(queries.len(), dim, out.len(), rows);
    check(data, 8, rows, dim, nq, queries.len(), out.len());
    let backend = Backend::current();
    let block = dispatch::matmul::query_block(backend);
    let packed = pack(queries, dim, block);
    batch(data, 8 * dim, rows, out, |tile, w, out| {
        dispatch::matmul::batch_u64(backend, tile, w, &packed, block, out);
    });
}
