//! Basis conversion, four residues at a time as doubles. A back-end gives `upper_halves`.
//!
//! # How a target is reached
//!
//! A target's residue is Σ y_i (Q/q_i) − v Q; v is one more y with the factor −Q. A tile's y_i and
//! v (16 KiB) are computed once and read by every target. The factors carry 2^52, so a Montgomery
//! step reduces: with m = low p^-1 mod 2^52, the result is the sum's upper part less the upper half
//! of m p, below p (k/4 + 1) for k sources. v = round(Σ y_i / q_i) uses 51-bit fractions: the upper
//! half of y 2^(52 − bits) times floor(2^(51 + bits) / q), short by less than two units, half of
//! which is added first.

macro_rules! double_conversion {
    ($features:literal) => {
        use super::lanes::*;
        use crate::backend::operands::basis::{ConversionTable, FRACTION_BITS, Source, Target};
        use crate::backend::portable;

        /// Vectors of `y_i` and `v` that are kept while the targets read them: 16 KiB, half of the
        /// first-level cache.
        const KEPT: usize = 512;
        /// Vectors whose sums are under way together, so that one hides the other's latency.
        const GROUP: usize = 4;
        /// Products below `0.6 p` that add up to less than `8 p` together with a reduced sum.
        const TERMS: usize = 8;

        #[target_feature(enable = $features)]
        pub(crate) fn convert(c: &ConversionTable, from: &[&[u64]], to: &mut [&mut [u64]]) {
            let vectors = from.first().map_or(0, |p| p.len()) / LANES;
            let count = c.sources.len();
            let mut kept = [[0; LANES]; KEPT];
            let tile = KEPT / (count + 1) / GROUP * GROUP;
            for at in (0..vectors).step_by(tile) {
                let width = tile.min(vectors - at);
                let kept = &mut kept[..(count + 1) * width];
                let (y, v) = kept.split_at_mut(count * width);
                v.fill([(1 << (FRACTION_BITS - 1)) + count as u64; LANES]);
                for ((source, x), y) in c.sources.iter().zip(from).zip(y.chunks_exact_mut(width)) {
                    numerators(source, &x.as_chunks::<LANES>().0[at..at + width], y, v);
                }
                for v in v {
                    *v = v.map(|sum| sum >> FRACTION_BITS);
                    store_values(v, load_residues(v));
                }
                for (target, out) in c.targets.iter().zip(to.iter_mut()) {
                    sums(target, kept, &mut out.as_chunks_mut::<LANES>().0[at..at + width]);
                }
            }
            portable::basis::convert_from(vectors * LANES, c, from, to);
        }

        /// `y = x (Q/q)^-1 mod q` as a double, and `y / q` added to the fractions.
        #[target_feature(enable = $features)]
        fn numerators(
            source: &Source,
            x: &[[u64; LANES]],
            y: &mut [[u64; LANES]],
            fractions: &mut [[u64; LANES]],
        ) {
            let c = Constants::of(&source.modulus);
            let w = factor(&source.modulus, &source.inverse);
            for ((x, y), fraction) in x.iter().zip(y).zip(fractions) {
                store_residues(&c, y, mul_root(&c, load_residues(x), w));
                let upper = upper_halves(y.map(|y| y << source.shift), source.ratio);
                for (fraction, upper) in fraction.iter_mut().zip(upper) {
                    *fraction += upper;
                }
                store_values(y, load_residues(y));
            }
        }

        /// The sums for one target: rows of `out.len()` vectors in `kept`, one for every factor.
        #[target_feature(enable = $features)]
        fn sums(target: &Target, kept: &[[u64; LANES]], out: &mut [[u64; LANES]]) {
            let width = out.len();
            let (groups, rest) = out.as_chunks_mut::<GROUP>();
            for (i, out) in groups.iter_mut().enumerate() {
                sum::<GROUP>(target, &kept[i * GROUP..], width, out);
            }
            let whole = groups.len() * GROUP;
            for (i, out) in rest.as_chunks_mut::<1>().0.iter_mut().enumerate() {
                sum::<1>(target, &kept[whole + i..], width, out);
            }
        }

        /// `sum_i y_i w_i`, reduced once in eight terms.
        #[inline]
        #[target_feature(enable = $features)]
        fn sum<const N: usize>(
            target: &Target,
            kept: &[[u64; LANES]],
            width: usize,
            out: &mut [[u64; LANES]; N],
        ) {
            let c = Constants::of(&target.modulus);
            let mut sum = [zero(); N];
            for (rows, factors) in kept.chunks(TERMS * width).zip(target.doubles.chunks(TERMS)) {
                for (i, &(root, ratio)) in factors.iter().enumerate() {
                    let w = spread(root, ratio);
                    for (sum, y) in sum.iter_mut().zip(&rows[i * width..i * width + N]) {
                        *sum = add(*sum, mul_root(&c, load_values(y), w));
                    }
                }
                for sum in &mut sum {
                    *sum = reduce(&c, *sum);
                }
            }
            for (out, sum) in out.iter_mut().zip(sum) {
                store_final(&c, out, sum);
            }
        }
    };
}
pub(crate) use double_conversion;
