//! Scan, compact form: inner products of stored words with plain queries. Server only.

use super::{Width, serialize};
use ciphervec_arith::matmul;

/// The server's product: `y_v = Σ_i q_i b_i[v]` for every query and every row, query-major
/// little-endian words.
///
/// `words` holds `rows` vectors in tile layout ([`matmul`]); queries are `count` rows of
/// `dimension` integers.
pub fn scan(
    width: Width,
    words: &[u8],
    rows: usize,
    dimension: usize,
    queries: &[i64],
    out: &mut Vec<u8>,
) {
    let count = queries.len() / dimension;
    match width {
        Width::Standard | Width::Small => {
            // Queries are below 2^31 at these widths: the bound is checked where they are parsed.
            let narrow: Vec<i32> = queries.iter().map(|&value| value as i32).collect();
            let mut sums = vec![0u32; count * rows];
            match (width, count) {
                (Width::Standard, 1) => {
                    matmul::scan_u32(words, rows, dimension, &narrow, &mut sums)
                }
                (Width::Standard, _) => {
                    matmul::scan_u32_batch(words, rows, dimension, &narrow, &mut sums)
                }
                (_, 1) => matmul::scan_u24(words, rows, dimension, &narrow, &mut sums),
                (_, _) => matmul::scan_u24_batch(words, rows, dimension, &narrow, &mut sums),
            }
            serialize::append_u32(width, &sums, out);
        }
        Width::Wide => {
            let mut sums = vec![0u64; count * rows];
            if count == 1 {
                matmul::scan_u64(words, rows, dimension, queries, &mut sums);
            } else {
                matmul::scan_u64_batch(words, rows, dimension, queries, &mut sums);
            }
            serialize::append_u64(&sums, out);
        }
    }
}
