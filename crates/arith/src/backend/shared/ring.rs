//! Ring scan, by exact multiply-adds of doubles, four lanes at a time.
//!
//! Both factors are cut into halves of 25 bits, centred, so that sums of `TERMS` products are
//! integers that doubles hold. A residue's halves stay at the bit of a byte where they were packed:
//! the one at bit `s` becomes the double `2^s d`, and its lane's sums carry the `2^s` to the end.
//!
//! A back-end gives 32 bytes as `Packed`, two halves of 16: loads, a store, `move_bytes`,
//! `keep_bits`, `shift_down` and `below_exponent`.
//!
//! # Bounds and caches
//!
//! **Without IFMA** (`avx2`) a 50 × 50-bit product is four of 25 × 25 in doubles. Sums of 22 are
//! exact with both sides centred, |d| ≤ 4/3 · 2²⁴ and |w| ≤ 2²⁴; then three operations reduce
//! modulo q. The halves of four residues start at bits 0, 25, …, 175 of 25 bytes: one shuffle and
//! one AND serve all eight, and 2^52 is set above them. They are not shifted down: a lane's sums
//! carry 2^s, and one subtraction removes 2^52 and centres. The loop fills sixteen registers, so it
//! must not be inlined. 22 nodes (10 KB) stay in L1 for eight passes; words are prefetched 16 KB
//! ahead.

macro_rules! double_scan {
    ($features:literal) => {
        use super::lanes::*;
        use crate::backend::operands::layout::{GROUP, STRIP, STRIP_BYTES};
        use crate::backend::portable;
        use crate::backend::shared::prefetch::{FAR, prefetch_ahead, prefetch_far};
        use crate::modulus::Modulus;

        use core::ops::Range;

        pub(crate) use crate::backend::portable::ring::pack50;

        /// Vectors of four residues in a strip.
        const VECTORS: usize = STRIP / LANES;
        /// Bits of a half.
        const HALF: u32 = 25;
        /// What centring takes from a high half, and half of what it takes from a low one, which
        /// starts one bit further down: with the bits before them both are the same number, and
        /// halves of residues are up to `2 CENTRE`.
        const CENTRE: u64 = (1 << HALF) / 3 + 1;
        /// What centring takes from a residue.
        const OFFSET: u64 = 2 * CENTRE + (CENTRE << HALF);
        /// Terms between two reductions. A sum starts, reduced, from `|x| <= q/2 + 2 < 2^49 + 2`,
        /// and a product is up to `2 CENTRE 2^24`: together they stay below the `2^53` to which
        /// doubles hold all integers.
        const TERMS: usize = 22;
        const _: () = assert!((1 << 49) + 2 + TERMS as u64 * 2 * CENTRE * (1 << 24) < 1 << 53);
        /// Queries that share a pass over the data: what is cut of [`TERMS`] nodes takes 44 KiB.
        const PASS: usize = 8;
        /// Groups of blocks that they go over together: their sums take 128 KiB.
        const RUN: usize = 8;
        /// How far ahead of what is at hand packed residues and words are fetched: the strips of
        /// the next [`TERMS`] nodes of four blocks, so that the first of the passes over them finds
        /// them.
        const AHEAD: usize = 6144;
        /// `2^52`: the doubles from there to `2^53` have an integer as their low 52 bits.
        const SHIFT: f64 = (1u64 << 52) as f64;

        /// The words of a node that four residues are multiplied by: of `b'` the low halves and the
        /// high ones, then of `a'`.
        type Cut = [V; 4];
        /// For U and for V: the sums of `d0 w0`, `d0 w1`, `d1 w0` and `d1 w1`.
        type Sums = [[V; 4]; 2];
        /// Of a query over a group.
        type GroupSums = [[Sums; VECTORS]; GROUP];
        /// Sums of a query's words, of `b'` and of `a'`.
        type Totals = [[u64; LANES]; 2 * VECTORS];
        /// What the sums of `b'` and of `a'` lack for residues being taken without their
        /// [`OFFSET`].
        type Correction = [[f64; LANES]; 2 * VECTORS];

        type Strip = [u8; STRIP_BYTES];
        /// Where the sums of a query over a group go: U and V.
        type Out<'a> = (&'a mut [u64], &'a mut [u64]);

        /// The first 16 and the last 16 of the 25 bytes at `25 j`, which hold four residues: two
        /// begin in the first 12 and a half, and two behind.
        #[inline]
        #[target_feature(enable = $features)]
        fn load_packed<const J: usize>(strip: &Strip) -> Packed {
            let start = 25 * J;
            let (low, high) = (&strip[start..start + 16], &strip[start + 9..start + 25]);
            load_bytes(&low.as_chunks().0[0], &high.as_chunks().0[0])
        }

        /// What gives each of `lanes` in 16 bytes its piece of `bits`: piece `i` starts in byte
        /// `bits i / 8` of the first half, and of the last one with the 3 bytes before its pieces.
        const fn places(bits: usize, lanes: usize) -> [u64; LANES] {
            let mut words = [0; LANES];
            let mut at = 0;
            while at < 32 {
                let (lane, byte) = (at % 16 / (16 / lanes), at % (16 / lanes));
                let from = bits * lane / 8 + byte + if at >= 16 { 3 } else { 0 };
                // A byte beyond the sixteen is 0; no residue has bits there.
                let from = if from < 16 { from } else { 0x80 };
                words[at / 8] |= (from as u64) << (at % 8 * 8);
                at += 1;
            }
            words
        }

        /// Four residues, each from eight bytes: a shift by 0, 2, 4 or 6 drops the bits before it,
        /// a mask what follows.
        #[inline]
        #[target_feature(enable = $features)]
        fn unpack<const J: usize>(strip: &Strip, out: &mut [u64; LANES]) {
            let bytes = load_words(const { &places(50, 2) });
            store_words(out, shift_down(move_bytes(load_packed::<J>(strip), bytes)));
            *out = out.map(|word| word & ((1 << 50) - 1));
        }

        #[target_feature(enable = $features)]
        pub(crate) fn unpack50(bytes: &[u8], out: &mut [u64]) {
            let rows = out.as_chunks_mut::<LANES>().0.as_chunks_mut::<VECTORS>().0;
            for (strip, [first, last]) in bytes.as_chunks::<STRIP_BYTES>().0.iter().zip(rows) {
                unpack::<0>(strip, first);
                unpack::<1>(strip, last);
            }
        }

        /// What a scan cuts, multiplies and reduces with. Pairs are for low halves, which start at
        /// bits 0, 2, 4 and 6 of a byte, and for high halves, at bits 1, 3, 5 and 7.
        struct Kernel {
            bytes: Packed,
            /// The bits of the eight halves in their 32-bit lanes.
            mask: Packed,
            exponent: Packed,
            /// `2^52` and what centring takes, both to be taken from `2^52 + 2^s d`.
            centre: V,
            /// `q 2^s` and `1 / (q 2^s)`.
            scaled: [(V, V); 2],
            /// `2^-s`.
            unscale: [V; 2],
            q: V,
            half_q: V,
            constants: Constants,
            /// `2^25` and `2^50` modulo `q`.
            radices: [(V, V); 2],
        }

        impl Kernel {
            #[target_feature(enable = $features)]
            fn new(m: &Modulus) -> Self {
                let q = m.value() as f64;
                let lanes = |of: &dyn Fn(f64) -> f64| {
                    [0, 1].map(|high| {
                        load_doubles(&[0, 2, 4, 6].map(|s| of((1u32 << (s + high)) as f64)))
                    })
                };
                let masks: [u32; 8] = core::array::from_fn(|s| ((1 << HALF) - 1) << s);
                let radix = |bits: u32| {
                    let (root, ratio) = root_and_ratio(m, m.reduce(1 << bits));
                    spread(root, ratio)
                };
                let centre = |s| SHIFT + CENTRE as f64 * s;
                let (scaled, reciprocal) = (lanes(&|s| q * s), lanes(&|s| 1.0 / (q * s)));
                Kernel {
                    bytes: load_words(const { &places(25, 4) }),
                    mask: load_words(bytemuck::cast_ref(&masks)),
                    exponent: exponent(),
                    centre: lanes(&centre)[1],
                    scaled: [(scaled[0], reciprocal[0]), (scaled[1], reciprocal[1])],
                    unscale: lanes(&|s| 1.0 / s),
                    q: set_double(q),
                    half_q: set_double((m.value() / 2) as f64),
                    constants: Constants::of(m),
                    radices: [HALF, 2 * HALF].map(radix),
                }
            }

            /// Low and high halves of four residues, `2^s d` each; the residue is `d0 + 2^25 d1`
            /// plus [`OFFSET`].
            #[inline]
            #[target_feature(enable = $features)]
            fn halves<const J: usize>(&self, strip: &Strip) -> [V; 2] {
                let both = keep_bits(move_bytes(load_packed::<J>(strip), self.bytes), self.mask);
                let (low, high) = below_exponent(both, self.exponent);
                [sub(low, self.centre), sub(high, self.centre)]
            }

            /// A query's words of some nodes, centred and cut: `w = w0 + 2^25 w1` with both up to `2^24`.
            #[target_feature(enable = $features)]
            fn cut(&self, query: &[u64], cut: &mut Vec<[Cut; VECTORS]>, totals: &mut Totals) {
                let round = set_double(1.5 * (1u128 << (52 + HALF)) as f64);
                let scale = set_double(1.0 / (1u64 << HALF) as f64);
                let halves = |words: &[u64; LANES]| {
                    let x = load_residues(words);
                    let x = sub(x, above(x, self.half_q, self.q));
                    // Doubles as large as `round` are multiples of 2^25.
                    let high = sub(add(x, round), round);
                    (sub(x, high), product(high, scale))
                };
                let nodes = query.as_chunks::<LANES>().0.as_chunks::<{ 2 * VECTORS }>().0;
                cut.reserve(nodes.len());
                for (words, node) in nodes.iter().zip(cut.spare_capacity_mut()) {
                    // Two lines a node. Behind a strip's words lie those of the next one.
                    prefetch_ahead(&words[0], AHEAD);
                    prefetch_ahead(&words[2], AHEAD);
                    let [(b0, b1), (b2, b3), (a0, a1), (a2, a3)] =
                        [0, 1, 2, 3].map(|i| halves(&words[i]));
                    node.write([[b0, b1, a0, a1], [b2, b3, a2, a3]]);
                    for (total, word) in
                        totals.as_flattened_mut().iter_mut().zip(words.as_flattened())
                    {
                        *total += word;
                    }
                }
                // SAFETY: room for these nodes was reserved, and the loop wrote each.
                unsafe { cut.set_len(cut.len() + nodes.len()) };
            }

            /// The sums of one node more.
            #[inline]
            #[target_feature(enable = $features)]
            fn multiply_add([u, v]: Sums, [d0, d1]: [V; 2], [b0, b1, a0, a1]: Cut) -> Sums {
                [
                    [
                        fused(d0, b0, u[0]),
                        fused(d0, b1, u[1]),
                        fused(d1, b0, u[2]),
                        fused(d1, b1, u[3]),
                    ],
                    [
                        fused(d0, a0, v[0]),
                        fused(d0, a1, v[1]),
                        fused(d1, a0, v[2]),
                        fused(d1, a1, v[3]),
                    ],
                ]
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn reduce(&self, sums: Sums) -> Sums {
                sums.map(|mut sums| {
                    for (i, x) in sums.iter_mut().enumerate() {
                        let (q, reciprocal) = self.scaled[i / 2];
                        let quotient = nearest(product(*x, reciprocal));
                        *x = less(quotient, q, *x);
                    }
                    sums
                })
            }

            /// One block over at most [`TERMS`] nodes: eight sums, four constants, and four
            /// registers for the rest. Inlined it would share the sixteen with its callers.
            #[inline(never)]
            #[target_feature(enable = $features)]
            fn accumulate<const WIDTH: usize, const J: usize>(
                &self,
                strips: &[[Strip; WIDTH]],
                block: usize,
                query: &[[Cut; VECTORS]],
                sums: &mut Sums,
            ) {
                let mut sum = *sums;
                for (strips, words) in strips.iter().zip(query) {
                    let strip = &strips[block];
                    if J == 0 {
                        prefetch_ahead(strip, AHEAD);
                        prefetch_far(strip, FAR);
                    }
                    sum = Self::multiply_add(sum, self.halves::<J>(strip), words[J]);
                }
                *sums = self.reduce(sum);
            }

            /// The same with halves that [`Self::halves`] left for several queries.
            #[inline(never)]
            #[target_feature(enable = $features)]
            fn accumulate_halves<const J: usize>(
                &self,
                halves: &[[V; 2]],
                query: &[[Cut; VECTORS]],
                sums: &mut Sums,
            ) {
                let mut sum = *sums;
                for (&halves, words) in halves.iter().zip(query) {
                    sum = Self::multiply_add(sum, halves, words[J]);
                }
                *sums = self.reduce(sum);
            }

            /// The halves of one block at up to [`TERMS`] nodes.
            #[inline(never)]
            #[target_feature(enable = $features)]
            fn keep_halves<const WIDTH: usize, const J: usize>(
                &self,
                strips: &[[Strip; WIDTH]],
                block: usize,
                kept: &mut [[V; 2]],
            ) {
                for (strips, kept) in strips.iter().zip(kept) {
                    if J == 0 {
                        prefetch_ahead(&strips[block], AHEAD);
                        prefetch_far(&strips[block], FAR);
                    }
                    *kept = self.halves::<J>(&strips[block]);
                }
            }

            /// The sums of `2^s` times products, put together: below `3q`, as a residue in `[0,
            /// q)`.
            #[inline]
            #[target_feature(enable = $features)]
            fn finish(&self, sums: &[V; 4], correction: &[f64; LANES], out: &mut [u64; LANES]) {
                let [low, cross0, cross1, high] =
                    [0, 1, 2, 3].map(|i| product(sums[i], self.unscale[i / 2]));
                let c = &self.constants;
                let upper = add(
                    mul_root(c, add(cross0, cross1), self.radices[0]),
                    mul_root(c, high, self.radices[1]),
                );
                store_final(c, out, add(add(low, load_doubles(correction)), upper));
            }

            /// One query over the blocks of a group. [`TERMS`] nodes at a time, whose strips and
            /// words stay in the first-level cache for all blocks.
            #[target_feature(enable = $features)]
            fn scan_alone<const WIDTH: usize>(
                &self,
                group: &[Strip],
                words: &[[Cut; VECTORS]],
                lacks: &Correction,
                out: Out<'_>,
            ) {
                let group = group.as_chunks::<WIDTH>().0;
                let terms = terms(group.len());
                let mut sums = [[[[zero(); 4]; 2]; VECTORS]; WIDTH];
                for (strips, words) in group.chunks(terms).zip(words.chunks(terms)) {
                    for (block, [first, last]) in sums.iter_mut().enumerate() {
                        self.accumulate::<WIDTH, 0>(strips, block, words, first);
                        self.accumulate::<WIDTH, 1>(strips, block, words, last);
                    }
                }
                self.finish_group(&sums, lacks, out);
            }

            /// Some nodes of a group, whose halves are made once, times the words that several queries have there.
            #[target_feature(enable = $features)]
            fn accumulate_group<const WIDTH: usize>(
                &self,
                group: &[Strip],
                here: Range<usize>,
                words: &[[Cut; VECTORS]],
                sums: &mut [GroupSums],
            ) {
                let strips = &group.as_chunks::<WIDTH>().0[here];
                let mut halves = [[[[zero(); 2]; TERMS]; VECTORS]; WIDTH];
                for (block, [first, last]) in halves.iter_mut().enumerate() {
                    self.keep_halves::<WIDTH, 0>(strips, block, first);
                    self.keep_halves::<WIDTH, 1>(strips, block, last);
                }
                for (words, sums) in words.chunks_exact(strips.len()).zip(sums) {
                    for (halves, sums) in halves.iter().zip(sums) {
                        self.accumulate_halves::<0>(&halves[0], words, &mut sums[0]);
                        self.accumulate_halves::<1>(&halves[1], words, &mut sums[1]);
                    }
                }
            }

            /// Several queries over a run of groups: their sums, `[group][query]`, and what those lack. Nodes are the outer loop,
            /// so that what was cut of [`TERMS`] of them stays in the first two caches for all groups.
            #[target_feature(enable = $features)]
            fn scan_together(
                &self,
                run: &[Strip],
                nodes: usize,
                queries: &[&[u64]],
                m: &Modulus,
            ) -> (Vec<GroupSums>, Vec<Correction>) {
                let groups = run.len().div_ceil(GROUP * nodes);
                let mut sums = vec![[[[[zero(); 4]; 2]; VECTORS]; GROUP]; groups * queries.len()];
                let mut totals = vec![[[0; LANES]; 2 * VECTORS]; queries.len()];
                let terms = terms(nodes);
                let mut cut = Vec::with_capacity(queries.len() * terms);
                for first in (0..nodes).step_by(terms) {
                    let here = first..nodes.min(first + terms);
                    cut.clear();
                    for (query, totals) in queries.iter().zip(&mut totals) {
                        let words = here.start * 2 * STRIP..here.end * 2 * STRIP;
                        self.cut(&query[words], &mut cut, totals);
                    }
                    let sums = sums.chunks_exact_mut(queries.len());
                    for (group, sums) in run.chunks(GROUP * nodes).zip(sums) {
                        let here = here.clone();
                        match group.len() / nodes {
                            4 => self.accumulate_group::<4>(group, here, &cut, sums),
                            3 => self.accumulate_group::<3>(group, here, &cut, sums),
                            2 => self.accumulate_group::<2>(group, here, &cut, sums),
                            _ => self.accumulate_group::<1>(group, here, &cut, sums),
                        }
                    }
                }
                (sums, totals.into_iter().map(|totals| correction(totals, m)).collect())
            }

            #[target_feature(enable = $features)]
            fn finish_group(&self, sums: &[[Sums; VECTORS]], lacks: &Correction, (u, v): Out<'_>) {
                let (u, v) = (u.as_chunks_mut::<LANES>().0, v.as_chunks_mut::<LANES>().0);
                for (i, ((sums, u), v)) in sums.as_flattened().iter().zip(u).zip(v).enumerate() {
                    self.finish(&sums[0], &lacks[i % VECTORS], u);
                    self.finish(&sums[1], &lacks[VECTORS + i % VECTORS], v);
                }
            }
        }

        /// At most 2^12 words below 2^50 are in a total.
        fn correction(totals: Totals, m: &Modulus) -> Correction {
            let offset = m.reduce(OFFSET);
            totals.map(|total| {
                total.map(|total| m.to_centered(m.mul(m.reduce(total), offset)) as f64)
            })
        }

        /// Nodes in equal runs of at most [`TERMS`].
        fn terms(nodes: usize) -> usize {
            nodes.div_ceil(nodes.div_ceil(TERMS))
        }

        #[target_feature(enable = $features)]
        pub(crate) fn scan(
            data: &[u8],
            nodes: usize,
            queries: &[&[u64]],
            m: &Modulus,
            u: &mut [u64],
            v: &mut [u64],
        ) {
            if nodes == 0 {
                return portable::ring::scan(data, nodes, queries, m, u, v);
            }
            let kernel = Kernel::new(m);
            let strips = data.as_chunks::<STRIP_BYTES>().0;
            let blocks = strips.len() / nodes;
            // Where a query's sums over a group go.
            let place = |query: usize, group: usize, width: usize| {
                let at = (query * blocks + group * GROUP) * STRIP;
                at..at + width * STRIP
            };
            if let [query] = queries {
                let (mut words, mut totals) = (Vec::new(), [[0; LANES]; 2 * VECTORS]);
                kernel.cut(query, &mut words, &mut totals);
                let lacks = correction(totals, m);
                for (index, group) in strips.chunks(GROUP * nodes).enumerate() {
                    let width = group.len() / nodes;
                    let at = place(0, index, width);
                    let out = (&mut u[at.clone()], &mut v[at]);
                    match width {
                        4 => kernel.scan_alone::<4>(group, &words, &lacks, out),
                        3 => kernel.scan_alone::<3>(group, &words, &lacks, out),
                        2 => kernel.scan_alone::<2>(group, &words, &lacks, out),
                        _ => kernel.scan_alone::<1>(group, &words, &lacks, out),
                    }
                }
                return;
            }
            for (start, run) in strips.chunks(RUN * GROUP * nodes).enumerate() {
                for (pass, queries) in queries.chunks(PASS).enumerate() {
                    let (sums, lacks) = kernel.scan_together(run, nodes, queries, m);
                    let sums = sums.chunks_exact(queries.len());
                    for (index, (group, sums)) in run.chunks(GROUP * nodes).zip(sums).enumerate() {
                        let width = group.len() / nodes;
                        for (k, (sums, lacks)) in sums.iter().zip(&lacks).enumerate() {
                            let at = place(pass * PASS + k, start * RUN + index, width);
                            let out = (&mut u[at.clone()], &mut v[at]);
                            kernel.finish_group(&sums[..width], lacks, out);
                        }
                    }
                }
            }
        }
    };
}
pub(crate) use double_scan;
