//! Word scan for any vector width: sums of a block of vectors and queries stay in registers. A
//! back-end brings its loads and its arithmetic.

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

/// Scans by vectors of 32 bytes. A back-end gives them as `Words`, their loads and arithmetic, and
/// `Product`, sums of four products modulo `2^64`.
macro_rules! word_scans {
    ($features:literal) => {
        use crate::backend::operands::layout::TILE;
        use crate::backend::portable;
        use crate::backend::shared::matmul::{SLAB, blocked};
        use crate::backend::shared::prefetch::prefetch_ahead;

        /// How far ahead a scan for one query fetches.
        const PAGE: usize = 4096;

        #[inline(always)]
        fn fetch<T>(row: &T, lines: usize) {
            for line in 0..lines {
                prefetch_ahead(row, PAGE + 64 * line);
            }
        }

        #[target_feature(enable = $features)]
        pub(crate) fn tile_u32(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
            if w != TILE {
                return portable::matmul::tile_u32(tile, w, query, out);
            }
            let mut sum = [zero_words(); 8];
            for (row, &q) in tile.as_chunks::<32>().0.as_chunks::<8>().0.iter().zip(query) {
                let q = set_short(q);
                fetch(row, 4);
                for j in 0..8 {
                    sum[j] = add_short(sum[j], multiply_short(load(&row[j]), q));
                }
            }
            for j in 0..8 {
                store(&mut out[8 * j..8 * j + 8], sum[j]);
            }
        }

        #[target_feature(enable = $features)]
        pub(crate) fn tile_u24(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
            if w != TILE {
                return portable::matmul::tile_u24(tile, w, query, out);
            }
            let mut sum = [zero_words(); 8];
            for (row, &q) in tile.as_chunks::<24>().0.as_chunks::<8>().0.iter().zip(query) {
                let q = set_short(q);
                fetch(row, 3);
                for j in 0..8 {
                    sum[j] = add_short(sum[j], multiply_short(spread(&row[j]), q));
                }
            }
            for j in 0..8 {
                store(&mut out[8 * j..8 * j + 8], keep_24(sum[j]));
            }
        }

        /// Dimensions over which a quarter of a tile is summed before the next one: a page. The
        /// page after it is fetched in order meanwhile, which a prefetcher would not do that sees
        /// quarters of rows.
        const STEP: usize = PAGE / (8 * TILE);

        #[target_feature(enable = $features)]
        pub(crate) fn tile_u64(tile: &[u8], w: usize, query: &[i64], out: &mut [u64]) {
            if w != TILE {
                return portable::matmul::tile_u64(tile, w, query, out);
            }
            let mut sums = [[Product::zero(); 4]; 4];
            let rows = tile.as_chunks::<32>().0.as_chunks::<4>().0.as_chunks::<4>().0;
            for (rows, query) in rows.chunks(STEP).zip(query.chunks(STEP)) {
                for (quarter, sums) in sums.iter_mut().enumerate() {
                    let mut sum = *sums;
                    for (i, (row, &q)) in rows.iter().zip(query).enumerate() {
                        let q = broadcast_u64(q);
                        let two_lines = 128 * (STEP * quarter + i);
                        prefetch_ahead(&rows[0], PAGE + two_lines);
                        prefetch_ahead(&rows[0], PAGE + two_lines + 64);
                        for (sum, x) in sum.iter_mut().zip(&row[quarter]) {
                            *sum = add_u64(*sum, multiply_u64(load(x), q));
                        }
                    }
                    *sums = sum;
                }
            }
            for (sum, out) in sums.as_flattened().iter().zip(out.chunks_exact_mut(4)) {
                store(out, sum.total());
            }
        }

        /// Queries in a block: 2 vectors x 4 queries are 8 accumulators, which leaves half of the
        /// 16 registers to work with.
        pub(crate) const QUERIES: usize = 4;

        #[inline]
        #[target_feature(enable = $features)]
        fn accumulate_u32(to: &mut [u32; 8], sum: Words) {
            let old = load(bytemuck::cast_ref(to));
            store(to, add_short(old, sum));
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn accumulate_u24(to: &mut [u32; 8], sum: Words) {
            let sum = add_short(load(bytemuck::cast_ref(to)), sum);
            store(to, keep_24(sum));
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn accumulate_u64(to: &mut [u64; 4], sum: Product) {
            let old = load(bytemuck::cast_ref(to));
            store(to, add_long(old, sum.total()));
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn plain<const BYTES: usize>(_: &(), row: &[u8; BYTES], j: usize) -> Words {
            load(&row.as_chunks::<32>().0[j])
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn three(_: &(), row: &[u8; 192], j: usize) -> Words {
            spread(&row.as_chunks::<24>().0[j])
        }

        blocked!(
            batch_u32, $features, i32 => u32,
            row 256, lanes 8, groups 4 of 2, queries 1 2 3 4,
            zero_words(), (), plain,
            set_short, multiply_short, add_short, accumulate_u32
        );
        blocked!(
            batch_u24, $features, i32 => u32,
            row 192, lanes 8, groups 4 of 2, queries 1 2 3 4,
            zero_words(), (), three,
            set_short, multiply_short, add_short, accumulate_u24
        );
        blocked!(
            batch_u64, $features, i64 => u64,
            row 512, lanes 4, groups 16 of 1, queries 1 2 3 4,
            Product::zero(), (), plain,
            broadcast_u64, multiply_u64, add_u64, accumulate_u64
        );
    };
}
pub(crate) use word_scans;
