//! Weighted sums of words or bytes modulo a power of two. Other back-ends inline these loops where
//! their features are on, and a compiler makes vectors of them.

/// A sum for each row of weights, four rows to one read of the words.
macro_rules! dots {
    ($name:ident, $word:ty) => {
        #[inline(always)]
        pub(crate) fn $name(x: &[$word], weights: &[$word], out: &mut [$word]) {
            if x.is_empty() {
                return;
            }
            let (fours, out) = out.as_chunks_mut::<4>();
            let (near, weights) = weights.split_at(4 * fours.len() * x.len());
            for (sums, weights) in fours.iter_mut().zip(near.chunks_exact(4 * x.len())) {
                let [a, b, c, d] = [0, 1, 2, 3].map(|row| &weights[row * x.len()..][..x.len()]);
                for ((((word, a), b), c), d) in x.iter().zip(a).zip(b).zip(c).zip(d) {
                    sums[0] = sums[0].wrapping_add(word.wrapping_mul(*a));
                    sums[1] = sums[1].wrapping_add(word.wrapping_mul(*b));
                    sums[2] = sums[2].wrapping_add(word.wrapping_mul(*c));
                    sums[3] = sums[3].wrapping_add(word.wrapping_mul(*d));
                }
            }
            for (sum, weights) in out.iter_mut().zip(weights.chunks_exact(x.len())) {
                *sum = x.iter().zip(weights).fold(*sum, |sum, (&word, &weight)| {
                    sum.wrapping_add(word.wrapping_mul(weight))
                });
            }
        }
    };
}

dots!(dots_u32, u32);
dots!(dots_u64, u64);

/// Differences, what they stand for, and the least and the greatest of them.
macro_rules! differences {
    ($name:ident, $word:ty) => {
        #[inline(always)]
        pub(crate) fn $name(
            words: &[$word],
            masks: &[u64],
            (dropped, bits): (u32, u32),
            unit: f64,
            sums: &mut [i64],
            scaled: &mut [f64],
        ) -> (i64, i64) {
            let shift = 64 - bits;
            let (mut least, mut greatest) = (i64::MAX, i64::MIN);
            let pairs = words.iter().zip(masks);
            for ((&word, mask), (sum, scaled)) in pairs.zip(sums.iter_mut().zip(scaled)) {
                let difference = (u64::from(word) << dropped).wrapping_sub(*mask);
                let centred = ((difference << shift) as i64) >> shift;
                *sum = centred;
                *scaled = centred as f64 * unit;
                least = least.min(centred);
                greatest = greatest.max(centred);
            }
            (least, greatest)
        }
    };
}

differences!(differences_u32, u32);
differences!(differences_u64, u64);

/// Products of every row with every polynomial, row by row.
#[inline(always)]
pub(crate) fn ternary(bytes: &[u8], rows: &[&[i8]], out: &mut [u8]) {
    for (index, out) in out.iter_mut().enumerate() {
        let polys = bytes.len() / rows[0].len();
        let (row, poly) = (rows[index / polys], index % polys);
        let poly = &bytes[poly * row.len()..][..row.len()];
        *out = poly
            .iter()
            .zip(row)
            .fold(0u8, |sum, (a, t)| sum.wrapping_add(a.wrapping_mul(*t as u8)));
    }
}
