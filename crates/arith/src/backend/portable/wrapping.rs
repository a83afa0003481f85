//! Wrapping sums: words or bytes and weights enter, sums modulo a power of two leave. Other
//! back-ends inline these loops where their features are on, and a compiler makes vectors of them.

/// A sum for each row of weights.
macro_rules! dots {
    ($name:ident, $word:ty) => {
        #[inline(always)]
        pub(crate) fn $name(x: &[$word], weights: &[$word], out: &mut [$word]) {
            if x.is_empty() {
                return;
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

/// A byte for each polynomial: `(a & nonzero) ^ negative` is `a`, 0 or `-a - 1`, and the ones are
/// made up for by their number.
#[inline(always)]
pub(crate) fn ternary(bytes: &[u8], nonzero: &[u8], negative: &[u8], out: &mut [u8]) {
    let ones = negative.iter().fold(0u8, |ones, mask| ones.wrapping_sub(*mask));
    for (out, poly) in out.iter_mut().zip(bytes.chunks_exact(nonzero.len().max(1))) {
        let row = poly.iter().zip(nonzero).zip(negative);
        *out = row
            .fold(ones, |sum, ((a, nonzero), negative)| sum.wrapping_add((a & nonzero) ^ negative));
    }
}
