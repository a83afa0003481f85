//! FMA limbs: multi-limb lanes whose limbs are doubles, the same for every vector width.
//!
//! Signed limbs in base `2^52`, in `[-2^51, 2^51)`, so a product is at most `2^102` and
//! `1.5 2^103 + ab` has a unit in the last place of `2^51`: a fused multiply-add rounds `ab` to
//! `h 2^51`, and a second one gives the rest, at most `2^50`, exactly. Both are taken as the
//! integers that their bit patterns are, up to a constant per product that is subtracted once a
//! column.
//!
//! A back-end brings its vectors and instructions under common names.
//!
//! # Why limbs are signed
//!
//! Limbs are signed doubles, |x| ≤ 2⁵¹. With C = 1.5 · 2¹⁰³, whose unit in the last place is 2⁵¹:
//!
//! ```text
//! h = fma(x, y, C)              C + 2⁵¹ round(xy / 2⁵¹)
//! l = fma(x, y, (C + D) − h)    D + the rest, |rest| ≤ 2⁵⁰, exact;  D = 1.5 · 2⁵²
//! ```
//!
//! The bit patterns of h and l are integers up to a constant: two integer additions sum them, and
//! `count` times the constants is subtracted once a column. Limbs must be signed: with |x| up to
//! 2⁵² the unit of C would be 2⁵² and D not a multiple of it. AVX2 uses tiles of 2 × 2. Portable
//! code sums 60-bit signed limbs in 128 bits.

/// The lanes module's functions on doubles, for one vector width.
macro_rules! fma_limbs {
    ($features:literal) => {
        /// The sum `low + 2^51 high`.
        #[derive(Clone, Copy)]
        struct Acc {
            low: Words,
            high: Words,
        }

        /// `1.5 2^103`: one unit in the last place is `2^51`.
        const HIGH: f64 = 1.5 * (1u128 << 103) as f64;
        /// `1.5 2^52`: one unit in the last place is 1.
        const LOW: f64 = 1.5 * (1u64 << 52) as f64;
        const MASK: i64 = (1 << 52) - 1;
        const SIGN: i64 = 1 << 51;

        /// How a limb is stored.
        fn encode(limb: i64) -> u64 {
            (limb as f64).to_bits()
        }

        /// [`encode`], undone.
        fn decode(word: u64) -> i64 {
            f64::from_bits(word) as i64
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn zero() -> Acc {
            Acc { low: zero_words(), high: zero_words() }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn splat(word: u64) -> V {
            set_double(f64::from_bits(word))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn multiply(acc: &mut Acc, a: V, b: V) {
            let high = fused(a, b, set_double(HIGH));
            let rest = sub_doubles(set_double(HIGH + LOW), high);
            let low = fused(a, b, rest);
            acc.high = add_words(acc.high, as_words(high));
            acc.low = add_words(acc.low, as_words(low));
        }

        /// Takes the constants of `count` products out of a column.
        #[inline]
        #[target_feature(enable = $features)]
        fn unbias(acc: &mut Acc, count: u64) {
            let low = count.wrapping_mul(LOW.to_bits()) as i64;
            let high = count.wrapping_mul(HIGH.to_bits()) as i64;
            acc.low = sub_words(acc.low, set_word(low));
            acc.high = sub_words(acc.high, set_word(high));
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn double(acc: &mut Acc) {
            let copy = *acc;
            join(acc, &copy);
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn join(acc: &mut Acc, other: &Acc) {
            acc.low = add_words(acc.low, other.low);
            acc.high = add_words(acc.high, other.high);
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn subtract(acc: &mut Acc, limb: V) {
            let shifted = as_words(add_doubles(limb, set_double(LOW)));
            let integer = sub_words(shifted, set_word(LOW.to_bits() as i64));
            acc.low = sub_words(acc.low, integer);
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn add_word(acc: &mut Acc, word: u64) {
            acc.low = add_words(acc.low, set_word(word as i64));
        }

        /// Words to the number in `[-2^51, 2^51)` that they are congruent to modulo `2^52`.
        #[inline]
        #[target_feature(enable = $features)]
        fn centre(x: Words) -> Words {
            let low = and(x, set_word(MASK));
            let sign = set_word(SIGN);
            sub_words(xor(low, sign), sign)
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn to_double(x: Words) -> V {
            let shifted = add_words(x, set_word(LOW.to_bits() as i64));
            sub_doubles(as_doubles(shifted), set_double(LOW))
        }

        /// What a column holds, up to multiples of `2^52`.
        #[inline]
        #[target_feature(enable = $features)]
        fn low_bits(acc: &Acc) -> Words {
            let odd = and(acc.high, set_word(1));
            add_words(acc.low, shift_left::<51>(odd))
        }

        /// The limb of a column and what it passes to the next one.
        #[inline]
        #[target_feature(enable = $features)]
        fn carry(acc: Acc) -> (V, Words) {
            let sum = low_bits(&acc);
            let limb = centre(sum);
            let above = shift_right::<52>(sub_words(sum, limb));
            (to_double(limb), add_words(above, shift_right::<1>(acc.high)))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn pass(acc: &mut Acc, carry: Words) {
            acc.low = add_words(acc.low, carry);
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn digit(acc: &Acc, inverse: V) -> V {
            let mut product = zero();
            multiply(&mut product, to_double(centre(low_bits(acc))), inverse);
            unbias(&mut product, 1);
            to_double(centre(low_bits(&product)))
        }

        /// No limb chosen yet.
        #[inline]
        #[target_feature(enable = $features)]
        fn nothing() -> Words {
            zero_words()
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn bits(limbs: &Limbs) -> Words {
            as_words(load(limbs))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn same(word: u64) -> Words {
            set_word(word as i64)
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn keep(limbs: &mut Limbs, chosen: Words) {
            store(limbs, as_doubles(chosen));
        }
    };
}
pub(crate) use fma_limbs;
