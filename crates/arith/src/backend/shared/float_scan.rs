//! Float scan for any vector width: sums of a block of rows and queries stay in registers. A
//! back-end brings its loads and its multiply-add.

/// Rows that all queries pass over before the next: at 512 dimensions they fill half of the
/// first-level cache.
pub(crate) const BLOCK: usize = 8;
/// How far ahead a scan for one query fetches.
pub(crate) const AHEAD: usize = 4096;

/// `rows x queries` times the eight sums of an inner product, `vectors` registers each. `$words(x,
/// j)` makes doubles of the `j`th part of eight float32 words, `$query` loads that of eight
/// doubles.
macro_rules! float_products {
    (
        $features:literal, $vectors:literal vectors,
        $rows:literal rows of $queries:literal queries, $alone:literal of one,
        $zero:ident, $words:ident, $query:ident, $multiply_add:ident, $store:ident
    ) => {
        #[target_feature(enable = $features)]
        fn tile<const R: usize, const Q: usize>(
            rows: [&[u8]; R],
            queries: [&[f64]; Q],
        ) -> [[[u8; 4]; Q]; R] {
            let steps = queries[0].len() / 8;
            let words = rows.map(|row| &row.as_chunks::<32>().0[..steps]);
            let factors = queries.map(|query| &query.as_chunks::<8>().0[..steps]);
            let mut sums = [[[$zero(); $vectors]; Q]; R];
            for i in 0..steps {
                // SAFETY: all of these slices are `steps` long.
                let factors = factors.map(|factors| unsafe { factors.get_unchecked(i) });
                // SAFETY: as above.
                let words = words.map(|words| unsafe { words.get_unchecked(i) });
                if Q == 1 {
                    // What will be read next; for several queries it is in cache.
                    words.iter().for_each(|words| prefetch_ahead(*words, AHEAD));
                }
                for j in 0..$vectors {
                    let q = factors.map(|factors| $query(factors, j));
                    for (words, sums) in words.iter().zip(&mut sums) {
                        let x = $words(words, j);
                        for (sums, q) in sums.iter_mut().zip(q) {
                            sums[j] = $multiply_add(x, q, sums[j]);
                        }
                    }
                }
            }
            // A copy is what leaves: sums that are borrowed below would be written to memory at every step.
            let sums = sums.map(|sums| sums.map(|sums| $store(&sums)));
            let mut out = [[[0; 4]; Q]; R];
            for ((out, row), sums) in out.iter_mut().zip(rows).zip(&sums) {
                for ((out, query), sums) in out.iter_mut().zip(queries).zip(sums) {
                    *out = finish(sums, row, query);
                }
            }
            out
        }

        #[target_feature(enable = $features)]
        pub(crate) fn products(
            rows: &[u8],
            dim: usize,
            queries: &[f64],
            out: &mut [&mut [[u8; 4]]],
        ) {
            #[target_feature(enable = $features)]
            fn block<const R: usize, const Q: usize>(
                rows: &[u8],
                dim: usize,
                here: &mut Range<usize>,
                queries: &[f64],
                out: &mut [&mut [[u8; 4]]],
            ) {
                let queries = core::array::from_fn(|k| &queries[k * dim..][..dim]);
                while here.len() >= R {
                    let first = here.start;
                    let rows = core::array::from_fn(|v| &rows[4 * dim * (first + v)..][..4 * dim]);
                    let sums: [[[u8; 4]; Q]; R] = tile(rows, queries);
                    for (v, sums) in sums.iter().enumerate() {
                        for (out, sum) in out.iter_mut().zip(sums) {
                            out[first + v] = *sum;
                        }
                    }
                    here.start += R;
                }
            }
            if dim == 0 {
                return portable::float_scan::products(rows, dim, queries, out);
            }
            let count = rows.len() / (4 * dim);
            for first in (0..count).step_by(BLOCK) {
                let here = first..count.min(first + BLOCK);
                let each = queries.chunks($queries * dim).zip(out.chunks_mut($queries));
                for (queries, out) in each {
                    if out.len() == $queries {
                        let mut left = here.clone();
                        block::<$rows, $queries>(rows, dim, &mut left, queries, out);
                        block::<1, $queries>(rows, dim, &mut left, queries, out);
                        continue;
                    }
                    for (query, out) in queries.chunks(dim).zip(out.chunks_mut(1)) {
                        let mut left = here.clone();
                        block::<$alone, 1>(rows, dim, &mut left, query, out);
                        block::<1, 1>(rows, dim, &mut left, query, out);
                    }
                }
            }
        }
    };
}
pub(crate) use float_products;
