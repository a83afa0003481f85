//! Inner products of rows of little-endian float32 words with float32 queries. For the server.
//!
//! A product of two float32 numbers is exact in double precision. A row's products are summed there
//! in eight sums, dimension `i` in sum `i mod 8`, which are then added one after the other, and to
//! them the products of the last `dim mod 8` dimensions; the result is rounded to float32. So all
//! back-ends return the same bits, whether they round a product before they add it or not.

use crate::backend::{Backend, dispatch};
use crate::matmul::batch;

/// `out[k][v]`, as little-endian bytes, is the inner product of row `v` with query `k`. Rows are
/// divided among the threads of the current rayon pool.
///
/// # Panics
/// When `queries` is not whole rows of `dim` words, or a length does not fit the others.
pub fn scan_f32(data: &[u8], rows: usize, dim: usize, queries: &[f32], out: &mut [[u8; 4]]) {
    assert_eq!(Some(data.len()), rows.checked_mul(4 * dim), "matrix bytes");
    assert_eq!(queries.len() * rows, out.len() * dim, "query words");
    let queries: Vec<f64> = queries.iter().map(|&word| f64::from(word)).collect();
    let backend = Backend::current();
    batch(data, 4 * dim, rows, out, |data, _, out| {
        dispatch::float_scan::products(backend, data, dim, &queries, out);
    });
}
