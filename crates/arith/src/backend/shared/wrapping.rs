//! Wrapping sums: loops over words, which a compiler makes vectors of where a back-end's features are
//! on, and products of bytes with ternary rows, the same for every vector width.
//!
//! A back-end gives the vector `V` of `WIDTH` bytes, `zero`, `load`, `add_products` and `totals`.
//!
//! # Scans of words
//!
//! y\[v] = Σ q_i b_i\[v] wraps, so it needs no reduction: `vpmulld` and `vpaddd`, `vpmullq` and
//! `vpaddq`. A tile is 64 rows, four accumulators, one broadcast a dimension.
//!
//! - **One query** is memory-bound and takes huge pages (`backend/pages.rs`).
//! - **24-bit words**: `vpermb` moves 48 bytes to 16 lanes. The fourth byte needs no mask before
//!   the last step, because multiples of 2^24 vanish.
//! - **Batches** use 4 vectors × 6 queries. A slab of 1024 dimensions (256 KB) stays in L2 while
//!   all blocks of six queries pass.
//! - **AVX2, products modulo 2^64**: `vpmuludq` for the low halves, one `vpmulld` by the query's
//!   word with exchanged halves for both crossed products.
//! - **Rows of float32** (`open`, `float_scan.rs`): a product of two is exact in double precision.
//!   All back-ends sum in the portable order, eight sums by `i mod 8`. Several queries use tiles of
//!   2 × 2 sums (AVX-512: 4 × 4) over eight rows in L1.

macro_rules! wrapping_sums {
    ($features:literal) => {
        use crate::backend::portable::wrapping;

        #[target_feature(enable = $features)]
        pub(crate) fn dots_u32(x: &[u32], weights: &[u32], out: &mut [u32]) {
            wrapping::dots_u32(x, weights, out);
        }

        #[target_feature(enable = $features)]
        pub(crate) fn dots_u64(x: &[u64], weights: &[u64], out: &mut [u64]) {
            wrapping::dots_u64(x, weights, out);
        }

        #[target_feature(enable = $features)]
        pub(crate) fn differences_u32(
            words: &[u32],
            masks: &[u64],
            shape: (u32, u32),
            unit: f64,
            sums: &mut [i64],
            scaled: &mut [f64],
        ) -> (i64, i64) {
            wrapping::differences_u32(words, masks, shape, unit, sums, scaled)
        }

        #[target_feature(enable = $features)]
        pub(crate) fn differences_u64(
            words: &[u64],
            masks: &[u64],
            shape: (u32, u32),
            unit: f64,
            sums: &mut [i64],
            scaled: &mut [f64],
        ) -> (i64, i64) {
            wrapping::differences_u64(words, masks, shape, unit, sums, scaled)
        }

        /// Four polynomials at a time, which stay in the first-level cache for all rows, and two rows.
        #[target_feature(enable = $features)]
        pub(crate) fn ternary(bytes: &[u8], rows: &[&[i8]], out: &mut [u8]) {
            let n = rows[0].len();
            let polys = bytes.len() / n;
            if !n.is_multiple_of(WIDTH) || !polys.is_multiple_of(4) {
                return wrapping::ternary(bytes, rows, out);
            }
            for (group, four) in bytes.chunks_exact(4 * n).enumerate() {
                let four = quarters(four);
                let (pairs, last) = rows.as_chunks();
                let (outs, out) = out.split_at_mut(2 * pairs.len() * polys);
                for (rows, outs) in pairs.iter().zip(outs.chunks_exact_mut(2 * polys)) {
                    let found = products::<2>(four, *rows);
                    for (out, found) in outs.chunks_exact_mut(polys).zip(found) {
                        out[4 * group..][..4].copy_from_slice(&found);
                    }
                }
                if let [row] = last {
                    out[4 * group..][..4].copy_from_slice(&products::<1>(four, [*row])[0]);
                }
            }
        }

        /// Four polynomials of one length.
        fn quarters(four: &[u8]) -> [&[[u8; WIDTH]]; 4] {
            let each = four.len() / 4;
            core::array::from_fn(|poly| four[poly * each..][..each].as_chunks().0)
        }

        /// Products of four polynomials with R rows. Two products of a byte with -1, 0 or 1 are at
        /// most 510 in size, which 16 bits hold; their sums wrap, and a byte of them is asked for.
        #[inline]
        #[target_feature(enable = $features)]
        fn products<const R: usize>(
            [a, b, c, d]: [&[[u8; WIDTH]]; 4],
            rows: [&[i8]; R],
        ) -> [[u8; 4]; R] {
            let rows = rows.map(|row| &row.as_chunks::<WIDTH>().0[..a.len()]);
            let mut sums = [[zero(); 4]; R];
            for (index, (((a, b), c), d)) in a.iter().zip(b).zip(c).zip(d).enumerate() {
                let four = [load(a), load(b), load(c), load(d)];
                for (row, sums) in rows.iter().zip(&mut sums) {
                    let t = load(bytemuck::cast_ref(&row[index]));
                    for (a, sum) in four.iter().zip(sums) {
                        *sum = add_products(*sum, *a, t);
                    }
                }
            }
            sums.map(|sums| totals(sums))
        }
    };
}
pub(crate) use wrapping_sums;
