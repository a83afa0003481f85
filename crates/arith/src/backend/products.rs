//! The shape of the multi-limb Montgomery products: columns of tiles, the same for every vector width and arithmetic.
//!
//! A back-end's lanes module gives a vector of limbs, an accumulator for one column and few operations on them; the
//! macro below writes product and square over them with that back-end's instructions enabled. An element of
//! `Z/n^k` is `k` digits in base `n`, a digit `limbs` limbs. With `S_t` the sum of the products of digits `i + j = t`,
//! Montgomery's reduction finds `m_t` with `S_t + m_t n = R z_t`, so `S_t` is `R z_t - m_t n`: `z_t` is digit `t` of the
//! product divided by `R`, and `-m_t` belongs to `S_{t+1}`. That makes 3 products and 2 reductions of half the length
//! for `n^2`, 5 `limbs^2` limb products instead of the 8 of a product modulo a number twice as long.

/// Eight limbs of one weight, one a residue, as the back-end's lanes hold them.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Row(pub [u64; 8]);

/// What a product needs to know of its modulus, limbs as the back-end's lanes hold them.
#[derive(Debug)]
pub(crate) struct Reduction {
    /// Digits of an element, in base `n`.
    pub digits: usize,
    /// Limbs of a digit, a multiple of the tile.
    pub limbs: usize,
    /// The limbs of `n`.
    pub modulus: Vec<u64>,
    /// `-1 / n` modulo the radix.
    pub inverse: u64,
    /// What keeps `S_{t+1} - m_t` from falling below zero, a multiple of `n`, limb by limb; empty for signed limbs.
    pub offset: Vec<u64>,
}

/// `mul`, `square` and the table reads, for one lanes module.
macro_rules! montgomery_products {
    ($(#[$attribute:meta])*) => {
        use crate::backend::products::{Reduction, Row};

        const COLUMNS: usize = 2 * TILE - 1;
        type Columns = [Acc; COLUMNS];

        /// `out = a b / R` in the first `lanes` lanes. Digits of `a` and `b` in the lazy range of the lanes, those of
        /// `out` again.
        $(#[$attribute])*
        pub(crate) fn mul(
            r: &Reduction,
            lanes: usize,
            out: &mut [Row],
            a: &[Row],
            b: &[Row],
            m: &mut [Row],
        ) {
            product::<false>(r, lanes, out, a, b, m);
        }

        /// `out = a^2 / R` in the first `lanes` lanes.
        $(#[$attribute])*
        pub(crate) fn square(
            r: &Reduction,
            lanes: usize,
            out: &mut [Row],
            a: &[Row],
            m: &mut [Row],
        ) {
            product::<true>(r, lanes, out, a, a, m);
        }

        $(#[$attribute])*
        #[inline]
        fn product<const SQUARE: bool>(
            r: &Reduction,
            lanes: usize,
            out: &mut [Row],
            a: &[Row],
            b: &[Row],
            m: &mut [Row],
        ) {
            let (size, tiles) = (r.limbs, r.limbs / TILE);
            assert!(size % TILE == 0 && r.modulus.len() == size && m.len() == size);
            assert!([out.len(), a.len(), b.len()] == [r.digits * size; 3]);
            let parts = lanes.div_ceil(WIDTH);
            for t in 0..r.digits {
                let mut spill = [[zero(); COLUMNS]; 8 / WIDTH];
                for column in 0..2 * tiles {
                    for (half, spill) in spill.iter_mut().take(parts).enumerate() {
                        let lane = half * WIDTH;
                        let mut acc = if SQUARE {
                            digit_squares(a, t, size, column, lane)
                        } else {
                            digit_products(a, b, t, size, column, lane)
                        };
                        // Tiles of m whose limbs are known: all but the one that this column is about to give.
                        let last = column.min(tiles);
                        let first = (column + 1).saturating_sub(tiles);
                        for at in first..last {
                            tile(
                                &mut acc,
                                &rows(&m[at * TILE..], lane),
                                &splats(&r.modulus[(column - at) * TILE..]),
                            );
                        }
                        settle(&mut acc, last.saturating_sub(first));
                        for (acc, spill) in acc.iter_mut().zip(spill.iter()) {
                            join(acc, spill);
                        }
                        let start = column * TILE;
                        if column < tiles {
                            if t > 0 {
                                for c in 0..TILE {
                                    subtract(&mut acc[c], load(&m[start + c], lane));
                                    if let Some(&limb) = r.offset.get(start + c) {
                                        add_word(&mut acc[c], limb);
                                    }
                                }
                            }
                            reduce(r, &mut acc, &mut m[start..], lane);
                        } else {
                            let out = &mut out[t * size + start - size..];
                            for c in 0..TILE {
                                let (limb, carry) = carry(acc[c]);
                                store(&mut out[c], lane, limb);
                                if c + 1 < COLUMNS {
                                    pass(&mut acc[c + 1], carry);
                                } else {
                                    acc[c] = zero();
                                    pass(&mut acc[c], carry);
                                }
                            }
                        }
                        *spill = shifted(&acc);
                    }
                }
            }
        }

        /// What the columns above the tile take into the next column of tiles.
        $(#[$attribute])*
        #[inline]
        fn shifted(acc: &Columns) -> Columns {
            let mut next = [zero(); COLUMNS];
            if TILE == 1 {
                next[0] = acc[0];
            } else {
                next[..TILE - 1].copy_from_slice(&acc[TILE..]);
            }
            next
        }

        /// Montgomery digits for the `TILE` lowest columns, which become zero and pass their carries on.
        $(#[$attribute])*
        #[inline]
        fn reduce(r: &Reduction, acc: &mut Columns, m: &mut [Row], lane: usize) {
            let n = splats(&r.modulus);
            let inverse = splat(r.inverse);
            let mut limbs = [inverse; TILE];
            for c in 0..TILE {
                // Columns from TILE on belong to later tiles, but the products of this tile reach them.
                let limb = digit(&acc[c], inverse);
                for j in 0..TILE - c {
                    multiply_settled(&mut acc[c + j], limb, n[j]);
                }
                limbs[c] = limb;
                store(&mut m[c], lane, limb);
                let (_, carry) = carry(acc[c]);
                if c + 1 < COLUMNS {
                    pass(&mut acc[c + 1], carry);
                } else {
                    acc[c] = zero();
                    pass(&mut acc[c], carry);
                }
            }
            for c in 1..TILE {
                for j in TILE - c..TILE {
                    multiply_settled(&mut acc[c + j], limbs[c], n[j]);
                }
            }
        }

        /// The sum of the products of digits `i + j = t` in one column of tiles.
        $(#[$attribute])*
        #[inline]
        fn digit_products(
            a: &[Row],
            b: &[Row],
            t: usize,
            size: usize,
            column: usize,
            lane: usize,
        ) -> Columns {
            let mut acc = [zero(); COLUMNS];
            let tiles = size / TILE;
            let range = (column + 1).saturating_sub(tiles)..(column + 1).min(tiles);
            for i in 0..=t {
                let (a, b) = (&a[i * size..(i + 1) * size], &b[(t - i) * size..(t - i + 1) * size]);
                for at in range.clone() {
                    tile(
                        &mut acc,
                        &rows(&a[at * TILE..], lane),
                        &rows(&b[(column - at) * TILE..], lane),
                    );
                }
            }
            settle(&mut acc, (t + 1) * range.len());
            acc
        }

        /// The same for `a = b`: every product of two different tiles once, doubled.
        $(#[$attribute])*
        #[inline]
        fn digit_squares(a: &[Row], t: usize, size: usize, column: usize, lane: usize) -> Columns {
            let mut acc = [zero(); COLUMNS];
            let tiles = size / TILE;
            let range = (column + 1).saturating_sub(tiles)..(column + 1).min(tiles);
            let mut count = 0;
            for i in 0..t.div_ceil(2) {
                let (a, b) = (&a[i * size..(i + 1) * size], &a[(t - i) * size..(t - i + 1) * size]);
                for at in range.clone() {
                    tile(
                        &mut acc,
                        &rows(&a[at * TILE..], lane),
                        &rows(&b[(column - at) * TILE..], lane),
                    );
                }
                count += range.len();
            }
            if t % 2 == 0 {
                let a = &a[t / 2 * size..(t / 2 + 1) * size];
                for at in range.start..range.end.min(column.div_ceil(2)) {
                    tile(
                        &mut acc,
                        &rows(&a[at * TILE..], lane),
                        &rows(&a[(column - at) * TILE..], lane),
                    );
                    count += 1;
                }
                settle(&mut acc, count);
                for acc in &mut acc {
                    double(acc);
                }
                if column % 2 == 0 && column / 2 < tiles {
                    let middle = rows(&a[column / 2 * TILE..], lane);
                    tile(&mut acc, &middle, &middle);
                    settle(&mut acc, 1);
                }
            } else {
                settle(&mut acc, count);
                for acc in &mut acc {
                    double(acc);
                }
            }
            acc
        }

        $(#[$attribute])*
        #[inline]
        fn tile(acc: &mut Columns, a: &[V; TILE], b: &[V; TILE]) {
            for i in 0..TILE {
                for j in 0..TILE {
                    multiply(&mut acc[i + j], a[i], b[j]);
                }
            }
        }

        /// Takes the bias of `count` tiles out of the columns.
        $(#[$attribute])*
        #[inline]
        fn settle(acc: &mut Columns, count: usize) {
            for (c, acc) in acc.iter_mut().enumerate() {
                unbias(acc, ((c + 1).min(COLUMNS - c) * count) as u64);
            }
        }

        $(#[$attribute])*
        #[inline]
        fn multiply_settled(acc: &mut Acc, a: V, b: V) {
            multiply(acc, a, b);
            unbias(acc, 1);
        }

        $(#[$attribute])*
        #[inline]
        fn rows(from: &[Row], lane: usize) -> [V; TILE] {
            let from: &[Row; TILE] = from.first_chunk().expect("a whole tile");
            let mut limbs = [splat(0); TILE];
            for (limb, row) in limbs.iter_mut().zip(from) {
                *limb = load(row, lane);
            }
            limbs
        }

        $(#[$attribute])*
        #[inline]
        fn splats(from: &[u64]) -> [V; TILE] {
            let from: &[u64; TILE] = from.first_chunk().expect("a whole tile");
            let mut limbs = [splat(0); TILE];
            for (limb, &word) in limbs.iter_mut().zip(from) {
                *limb = splat(word);
            }
            limbs
        }

        /// `out = table[index[lane]]` in every lane, by reading all of the table.
        $(#[$attribute])*
        pub(crate) fn select(out: &mut [Row], table: &[Row], index: &[u64; 8]) {
            out.fill(Row([0; 8]));
            for (entry, rows) in table.chunks_exact(out.len()).enumerate() {
                let mask = index.map(|i| mask_equal(i, entry as u64));
                for (out, row) in out.iter_mut().zip(rows) {
                    for ((out, word), mask) in out.0.iter_mut().zip(row.0).zip(mask) {
                        *out |= word & mask;
                    }
                }
            }
        }

        /// The same for a table of single residues, not of eight.
        $(#[$attribute])*
        pub(crate) fn select_single(out: &mut [Row], table: &[u64], index: &[u64; 8]) {
            out.fill(Row([0; 8]));
            for (entry, words) in table.chunks_exact(out.len()).enumerate() {
                let mask = index.map(|i| mask_equal(i, entry as u64));
                for (out, &word) in out.iter_mut().zip(words) {
                    for (out, mask) in out.0.iter_mut().zip(mask) {
                        *out |= word & mask;
                    }
                }
            }
        }

        /// All ones where the words are equal, without a branch.
        #[inline]
        fn mask_equal(a: u64, b: u64) -> u64 {
            let difference = core::hint::black_box(a ^ b);
            ((difference | difference.wrapping_neg()) >> 63).wrapping_sub(1)
        }
    };
}
pub(crate) use montgomery_products;
