//! Batch scan: a tile and packed queries enter, sums in registers over a block of vectors and
//! queries leave. A back-end brings its loads and its arithmetic.

/// Dimensions of a tile that one round over the queries covers: a slab of 256 KiB of 4-byte words
/// stays in the second-level cache while every block of queries passes over it.
pub(crate) const SLAB: usize = 1024;

/// For every slab of dimensions and every block of queries: `vectors x queries` accumulators, one
/// load of each vector and one broadcast of each query word a dimension. `$vector(row, j)` is
/// vector `j` of a row of `$bytes` bytes.
macro_rules! blocked {
    (
        $name:ident, $features:literal, $query:ty => $word:ty,
        row $bytes:literal, lanes $lanes:literal, groups $groups:literal of $vectors:literal,
        queries $($count:literal)+,
        $zero:expr, $prepare:expr, $vector:ident,
        $broadcast:ident, $multiply:ident, $add:ident, $accumulate:ident
    ) => {
        #[target_feature(enable = $features)]
        pub(crate) fn $name(
            tile: &[u8],
            w: usize,
            packed: &[$query],
            block: usize,
            out: &mut [&mut [$word]],
        ) {
            if w != TILE {
                return portable::matmul::$name(tile, w, packed, block, out);
            }
            #[inline]
            #[target_feature(enable = $features)]
            fn run<const Q: usize>(
                rows: &[[u8; $bytes]],
                queries: &[[$query; Q]],
                group: usize,
                out: &mut [&mut [$word]],
            ) {
                let prepared = $prepare;
                let mut sum = [[$zero; $vectors]; Q];
                for (row, q) in rows.iter().zip(queries) {
                    let mut x = [$vector(&prepared, row, group * $vectors); $vectors];
                    for (j, x) in x.iter_mut().enumerate().skip(1) {
                        *x = $vector(&prepared, row, group * $vectors + j);
                    }
                    for (sum, &q) in sum.iter_mut().zip(q) {
                        let q = $broadcast(q);
                        for (sum, &x) in sum.iter_mut().zip(&x) {
                            *sum = $add(*sum, $multiply(x, q));
                        }
                    }
                }
                let start = group * $vectors * $lanes;
                for (sum, out) in sum.iter().zip(out) {
                    let out = out[start..start + $vectors * $lanes].as_chunks_mut::<$lanes>().0;
                    for (sum, out) in sum.iter().zip(out) {
                        $accumulate(out, *sum);
                    }
                }
            }
            let rows = tile.as_chunks::<$bytes>().0;
            let dim = rows.len().max(1);
            for (slab, rows) in rows.chunks(SLAB).enumerate() {
                let first = slab * SLAB;
                for (queries, out) in packed.chunks(block * dim).zip(out.chunks_mut(block)) {
                    for group in 0..$groups {
                        match out.len() {
                            $($count => {
                                let queries = queries.as_chunks::<$count>().0;
                                run::<$count>(rows, &queries[first..], group, out);
                            })+
                            other => unreachable!("a block of {other} queries"),
                        }
                    }
                }
            }
        }
    };
}
pub(crate) use blocked;
