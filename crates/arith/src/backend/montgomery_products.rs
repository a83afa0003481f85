//! Montgomery products: columns of tiles of limbs, the same for every vector width and arithmetic.
//!
//! A back-end's lanes module gives a vector of limbs, an accumulator for one column and few
//! operations on them; the macro below writes product and square over them with that back-end's
//! instructions enabled. An element of `Z/n^k` is `k` digits in base `n`, a digit `limbs` limbs.
//! With `S_t` the sum of the products of digits `i + j = t`, Montgomery's reduction finds `m_t`
//! with `S_t + m_t n = R z_t`, so `S_t` is `R z_t - m_t n`: `z_t` is digit `t` of the product
//! divided by `R`, and `-m_t` belongs to `S_{t+1}`. That makes 3 products and 2 reductions of half
//! the length for `n^2`, 5 `limbs^2` limb products instead of the 8 of a product modulo a number
//! twice as long.
//!
//! # Tiles and sums
//!
//! **Columns of tiles.** A tile of 4 × 4 limbs is multiplied into 7 columns of low and high sums in
//! registers. All tiles of the same columns, of all digit pairs and of m·n, follow without a store;
//! then four columns are final.
//!
//! **IFMA** sums 52-bit halves in 64 bits: 2¹² fit, and the longest column has 480. m₀ can make a
//! digit's sum negative: a multiple of n just above R is added, and its quotient by n is subtracted
//! from the digit above.
//!
//! **Secret exponents** use windows of five bits; all 32 entries are read and merged by a mask.

/// `mul`, `square` and the table reads, for one lanes module.
macro_rules! montgomery_products {
    ($(#[$attribute:meta])*) => {
        use crate::backend::operands::montgomery::{LimbFormat, Reduction, Row};

        const COLUMNS: usize = 2 * TILE - 1;
        type Columns = [Acc; COLUMNS];
        /// Limbs of one weight, side by side as the lanes load them.
        type Limbs = [u64; WIDTH];

        /// `out = a b / R` in the first `lanes` lanes. Digits of `a` and `b` in the lazy range of
        /// the lanes, those of `out` again.
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
            let (size, rows) = (r.limbs, r.digits * r.limbs);
            assert!(size % TILE == 0 && r.modulus.len() == size && m.len() == size);
            assert!([out.len(), a.len(), b.len()] == [rows; 3]);
            let (a, b): (&[Limbs], &[Limbs]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
            let (out, m): (&mut [Limbs], &mut [Limbs]) =
                (bytemuck::cast_slice_mut(out), bytemuck::cast_slice_mut(m));
            let modulus = r.modulus.as_chunks::<TILE>().0;
            let (tiles, parts) = (size / TILE, lanes.div_ceil(WIDTH));
            for t in 0..r.digits {
                let mut spill = [[zero(); COLUMNS]; 8 / WIDTH];
                for column in 0..2 * tiles {
                    // The parts take turns, so that one's products cover the latency of the other's
                    // reduction.
                    for (part, spill) in spill.iter_mut().take(parts).enumerate() {
                        let a = a[part * rows..(part + 1) * rows].as_chunks::<TILE>().0;
                        let b = b[part * rows..(part + 1) * rows].as_chunks::<TILE>().0;
                        let m = &mut m[part * size..(part + 1) * size];
                        let mut acc = [zero(); COLUMNS];
                        let mut count = if SQUARE {
                            digit_squares(&mut acc, a, t, tiles, column)
                        } else {
                            digit_products(&mut acc, a, b, t, tiles, column)
                        };
                        // Tiles of m whose limbs are known: all but the one that this column is
                        // about to give.
                        let last = column.min(tiles);
                        let first = (column + 1).saturating_sub(tiles).min(last);
                        let known = &m.as_chunks::<TILE>().0[first..last];
                        let against = &modulus[column + 1 - last..column + 1 - first];
                        for (x, y) in known.iter().zip(against.iter().rev()) {
                            tile(&mut acc, &limbs(x), &splats(y));
                        }
                        count += known.len();
                        settle(&mut acc, count);
                        for (acc, spill) in acc.iter_mut().zip(spill.iter()) {
                            join(acc, spill);
                        }
                        let start = column * TILE;
                        if column < tiles {
                            let m = &mut m[start..start + TILE];
                            if t > 0 {
                                for (c, m) in m.iter().enumerate() {
                                    subtract(&mut acc[c], load(m));
                                    if let Some(&limb) = r.offsets[t.min(2) - 1].get(start + c) {
                                        add_word(&mut acc[c], limb);
                                    }
                                }
                            }
                            reduce(&mut acc, &modulus[0], r.inverse, m);
                        } else {
                            let start = part * rows + t * size + start - size;
                            for (c, out) in out[start..start + TILE].iter_mut().enumerate() {
                                store(out, finish(&mut acc, c));
                            }
                        }
                        *spill = shifted(&acc);
                    }
                }
            }
        }

        /// The limb of column `c`, whose carry goes to the next.
        $(#[$attribute])*
        #[inline]
        fn finish(acc: &mut Columns, c: usize) -> V {
            let (limb, carry) = carry(acc[c]);
            pass(&mut acc[c + 1], carry);
            limb
        }

        /// What the columns above the tile take into the next column of tiles.
        $(#[$attribute])*
        #[inline]
        fn shifted(acc: &Columns) -> Columns {
            let mut next = [zero(); COLUMNS];
            next[..TILE - 1].copy_from_slice(&acc[TILE..]);
            next
        }

        /// Montgomery digits for the `TILE` lowest columns, which become zero and pass their
        /// carries on.
        $(#[$attribute])*
        #[inline]
        fn reduce(acc: &mut Columns, modulus: &[u64; TILE], inverse: u64, m: &mut [Limbs]) {
            let n = splats(modulus);
            let inverse = splat(inverse);
            for (c, m) in m.iter_mut().enumerate() {
                let limb = digit(&acc[c], inverse);
                for j in 0..TILE {
                    multiply(&mut acc[c + j], limb, n[j]);
                    unbias(&mut acc[c + j], 1);
                }
                store(m, limb);
                finish(acc, c);
            }
        }

        /// The tiles of two factors that meet in a column of tiles: `a[range]`, and `b` backwards.
        #[inline]
        fn meeting(tiles: usize, column: usize) -> (usize, usize) {
            ((column + 1).saturating_sub(tiles), (column + 1).min(tiles))
        }

        $(#[$attribute])*
        #[inline]
        fn accumulate(acc: &mut Columns, a: &[[Limbs; TILE]], b: &[[Limbs; TILE]]) -> usize {
            for (a, b) in a.iter().zip(b.iter().rev()) {
                tile(acc, &limbs(a), &limbs(b));
            }
            a.len()
        }

        /// The sum of the products of digits `i + j = t` in one column of tiles; the number of
        /// tiles.
        $(#[$attribute])*
        #[inline]
        fn digit_products(
            acc: &mut Columns,
            a: &[[Limbs; TILE]],
            b: &[[Limbs; TILE]],
            t: usize,
            tiles: usize,
            column: usize,
        ) -> usize {
            let (first, last) = meeting(tiles, column);
            let mut count = 0;
            for i in 0..=t {
                let a = &a[i * tiles + first..i * tiles + last];
                let j = (t - i) * tiles;
                count += accumulate(acc, a, &b[j + column + 1 - last..j + column + 1 - first]);
            }
            count
        }

        /// The same for `a = b`: every product of two different tiles once, doubled.
        $(#[$attribute])*
        #[inline]
        fn digit_squares(
            acc: &mut Columns,
            a: &[[Limbs; TILE]],
            t: usize,
            tiles: usize,
            column: usize,
        ) -> usize {
            let (first, last) = meeting(tiles, column);
            let mut count = 0;
            for i in 0..t.div_ceil(2) {
                let j = (t - i) * tiles;
                let b = &a[j + column + 1 - last..j + column + 1 - first];
                count += accumulate(acc, &a[i * tiles + first..i * tiles + last], b);
            }
            let middle = &a[t / 2 * tiles..(t / 2 + 1) * tiles];
            if t % 2 == 0 {
                let last = last.min(column.div_ceil(2)).max(first);
                let b = &middle[column + 1 - last..column + 1 - first];
                count += accumulate(acc, &middle[first..last], b);
            }
            for acc in acc.iter_mut() {
                double(acc);
            }
            count *= 2;
            if t % 2 == 0 && column % 2 == 0 {
                let middle = limbs(&middle[column / 2]);
                tile(acc, &middle, &middle);
                count += 1;
            }
            count
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
        fn limbs(from: &[Limbs; TILE]) -> [V; TILE] {
            let mut limbs = [splat(0); TILE];
            for (limb, from) in limbs.iter_mut().zip(from) {
                *limb = load(from);
            }
            limbs
        }

        $(#[$attribute])*
        #[inline]
        fn splats(from: &[u64; TILE]) -> [V; TILE] {
            let mut limbs = [splat(0); TILE];
            for (limb, &word) in limbs.iter_mut().zip(from) {
                *limb = splat(word);
            }
            limbs
        }

        /// `out = table[index[lane]]` in every lane, by reading all of the table.
        $(#[$attribute])*
        pub(crate) fn select(out: &mut [Row], table: &[Row], index: &[u64; 8]) {
            let rows = out.len();
            let (out, table): (&mut [Limbs], &[Limbs]) =
                (bytemuck::cast_slice_mut(out), bytemuck::cast_slice(table));
            for (part, index) in index.as_chunks::<WIDTH>().0.iter().enumerate() {
                let out = out[part * rows..(part + 1) * rows].as_chunks_mut::<TILE>().0;
                for (at, out) in out.iter_mut().enumerate() {
                    let mut chosen = [nothing(); TILE];
                    for (entry, group) in table.chunks_exact(rows * 8 / WIDTH).enumerate() {
                        let mask = equal(index, entry as u64);
                        let limbs = &group[part * rows + at * TILE..][..TILE];
                        for (chosen, limbs) in chosen.iter_mut().zip(limbs) {
                            *chosen = merge(*chosen, mask, bits(limbs));
                        }
                    }
                    for (out, chosen) in out.iter_mut().zip(chosen) {
                        keep(out, chosen);
                    }
                }
            }
        }

        /// The same for a table of single residues, not of eight.
        $(#[$attribute])*
        pub(crate) fn select_single(out: &mut [Row], table: &[u64], index: &[u64; 8]) {
            let rows = out.len();
            let out: &mut [Limbs] = bytemuck::cast_slice_mut(out);
            for (part, index) in index.as_chunks::<WIDTH>().0.iter().enumerate() {
                let out = out[part * rows..(part + 1) * rows].as_chunks_mut::<TILE>().0;
                for (at, out) in out.iter_mut().enumerate() {
                    let mut chosen = [nothing(); TILE];
                    for (entry, words) in table.chunks_exact(rows).enumerate() {
                        let mask = equal(index, entry as u64);
                        for (chosen, &word) in chosen.iter_mut().zip(&words[at * TILE..][..TILE]) {
                            *chosen = merge(*chosen, mask, same(word));
                        }
                    }
                    for (out, chosen) in out.iter_mut().zip(chosen) {
                        keep(out, chosen);
                    }
                }
            }
        }
    };
}
pub(crate) use montgomery_products;
