//! The scan. Packed segments and expanded queries enter; U and V of every block leave, in coefficients. Server only.
//!
//! Strips of 32 coefficients are the outer loop, blocks the inner one, and data is stored strip-major: a strip of the query
//! (64 KB at 128 nodes) stays in the second-level cache while the database streams past once, however many queries wait.

use super::{DEGREE, Expanded, Layout, Ring};
use ciphervec_arith::matmul::{self, STRIP};
use rayon::prelude::*;

/// U and V of one query over one segment: block after block, N coefficients each.
pub struct Sums {
    /// U: Σ b_r c0_r.
    pub constant: Vec<u64>,
    /// V: Σ b_r c1_r.
    pub linear: Vec<u64>,
}

/// Multiplies `rows` packed vectors with every query at once. `data` is what [`super::pack`] or [`super::seal`] made for
/// `layout`, `queries` are expanded for the same layout.
///
/// # Panics
/// If `data` does not have the length of `rows` vectors in `layout`, or a query has another layout.
pub fn scan(
    ring: &Ring,
    layout: &Layout,
    data: &[u8],
    rows: usize,
    queries: &[&Expanded],
) -> Vec<Sums> {
    assert_eq!(data.len(), layout.packed_len(rows), "packed segment length");
    assert!(
        queries.iter().all(|query| query.layout() == layout),
        "query expanded for another layout"
    );
    let (blocks, nodes, count) = (layout.blocks(rows), layout.nodes(), queries.len());
    let q = ring.modulus();
    // [strip][query][block][32], then gathered into polynomials.
    let width = count * blocks * STRIP;
    let mut constant = vec![0u64; Layout::STRIPS * width];
    let mut linear = vec![0u64; Layout::STRIPS * width];
    let outputs = constant.par_chunks_exact_mut(width).zip(linear.par_chunks_exact_mut(width));
    data.par_chunks_exact(layout.strip_len(rows)).zip(outputs).enumerate().for_each(
        |(strip, (data, (u, v)))| {
            let strips: Vec<&[u64]> = queries.iter().map(|query| query.strip(strip)).collect();
            matmul::ring_scan_strip(data, blocks, nodes, &strips, q, u, v);
        },
    );
    (0..count)
        .map(|query| {
            let collect = |sums: &[u64]| {
                let mut polys = vec![0u64; blocks * DEGREE];
                polys.par_chunks_exact_mut(DEGREE).enumerate().for_each(|(block, poly)| {
                    for (strip, out) in poly.as_chunks_mut::<STRIP>().0.iter_mut().enumerate() {
                        out.copy_from_slice(
                            &sums[strip * width + (query * blocks + block) * STRIP..][..STRIP],
                        );
                    }
                    ring.ciphertext.inverse(poly);
                });
                polys
            };
            Sums { constant: collect(&constant), linear: collect(&linear) }
        })
        .collect()
}
