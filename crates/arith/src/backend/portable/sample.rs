//! Samples from words of keystream, without branches on those that are kept.

use crate::backend::operands::sample::{GAUSSIAN_TAIL, WIDE};

/// Masks each word and moves those below `q` to the front, in order; returns how many. Variable
/// time in the rejected.
pub(crate) fn accept(words: &mut [u64], mask: u64, q: u64) -> usize {
    let mut kept = 0;
    for i in 0..words.len() {
        let x = words[i] & mask;
        words[kept] = x;
        kept += usize::from(x < q);
    }
    kept
}

/// One sample a word.
pub(crate) fn gaussian(words: &[u64], out: &mut [i32]) {
    for (e, &word) in out.iter_mut().zip(words) {
        let uniform = word & (u64::MAX >> 1);
        // Both numbers are below 2^63: the sign of the difference is the comparison, with no branch
        // to tempt a compiler.
        let magnitude: i32 =
            GAUSSIAN_TAIL.iter().map(|&t| (uniform.wrapping_sub(t) >> 63) as i32).sum();
        let sign = -((word >> 63) as i32);
        *e = (magnitude ^ sign) - sign;
    }
}

/// Wide blocks of keystream by a kernel of the back-end's own, which this one does not have: the
/// caller's cipher goes on.
pub(crate) fn keystream(_: &[u8; 32], _: &[u8; 12], _: u32, _: &mut [[u8; WIDE]]) -> bool {
    false
}
