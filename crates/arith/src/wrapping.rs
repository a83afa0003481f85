//! Sums modulo a power of two, for the key owner, in constant time: words with weights or masks,
//! and bytes of polynomials with ternary rows.

use crate::backend::dispatch;

/// `out[j] += sum_v weights[j n + v] x[v]` modulo 2^32, with `n` words in `x` and `n` weights for
/// each of the sums.
///
/// # Panics
/// When `weights` is not `n` words for each of `out`.
pub fn dots_u32(x: &[u32], weights: &[u32], out: &mut [u32]) {
    assert_eq!(weights.len(), x.len() * out.len(), "weights");
    dispatch::wrapping::dots_u32(x, weights, out);
}

/// [`dots_u32`] modulo 2^64.
///
/// # Panics
/// When `weights` is not `n` words for each of `out`.
pub fn dots_u64(x: &[u64], weights: &[u64], out: &mut [u64]) {
    assert_eq!(weights.len(), x.len() * out.len(), "weights");
    dispatch::wrapping::dots_u64(x, weights, out);
}

/// What unmasking leaves: how words and masks are taken, and what a sum of 1 stands for.
#[derive(Clone, Copy, Debug)]
pub struct Unmasking {
    /// Bits that words lack below, at most 63.
    pub dropped: u32,
    /// log2 of the modulus, 1 to 64.
    pub bits: u32,
    /// What 1 stands for.
    pub unit: f64,
}

/// `sums[v] = 2^dropped words[v] - masks[v]` modulo 2^bits and centred, and `scaled[v]`, that times the
/// unit. The least and the greatest of the sums; [`i64::MAX`] and [`i64::MIN`] of none.
///
/// # Panics
/// When there are not as many sums as words, or fewer masks.
pub fn differences_u32(
    words: &[u32],
    masks: &[u64],
    by: Unmasking,
    sums: &mut [i64],
    scaled: &mut [f64],
) -> (i64, i64) {
    expect_lengths(words.len(), masks, sums, scaled);
    dispatch::wrapping::differences_u32(words, masks, (by.dropped, by.bits), by.unit, sums, scaled)
}

/// [`differences_u32`] of longer words.
///
/// # Panics
/// As there.
pub fn differences_u64(
    words: &[u64],
    masks: &[u64],
    by: Unmasking,
    sums: &mut [i64],
    scaled: &mut [f64],
) -> (i64, i64) {
    expect_lengths(words.len(), masks, sums, scaled);
    dispatch::wrapping::differences_u64(words, masks, (by.dropped, by.bits), by.unit, sums, scaled)
}

fn expect_lengths(words: usize, masks: &[u64], sums: &[i64], scaled: &[f64]) {
    let fits = masks.len() >= words && sums.len() == words && scaled.len() == words;
    assert!(fits, "a mask, a sum and its value for each word");
}

/// A ternary secret, laid out so that each coefficient of a negacyclic product is a product with a
/// stretch of it. Wiped on drop.
pub struct NegacyclicRows {
    /// `s` backwards, then `-s` backwards.
    reversed: Vec<i8>,
}

impl NegacyclicRows {
    /// Lays a secret out.
    pub fn new(secret: &[i8]) -> Self {
        let reversed = secret.iter().rev().copied();
        NegacyclicRows { reversed: reversed.chain(secret.iter().rev().map(|s| -s)).collect() }
    }

    /// The row that gives coefficient `place`: `s[v - j]` at `j <= v`, and `-s[n + v - j]` beyond.
    ///
    /// # Panics
    /// When `place` lies beyond the secret.
    pub fn row(&self, place: usize) -> &[i8] {
        let n = self.reversed.len() / 2;
        &self.reversed[n - 1 - place..][..n]
    }
}

impl Drop for NegacyclicRows {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.reversed);
    }
}

impl core::fmt::Debug for NegacyclicRows {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "NegacyclicRows({} values, redacted)", self.reversed.len() / 2)
    }
}

/// `out[r m + i] = sum_j rows[r][j] a_i[j]` modulo 2^8, where `bytes` are the low bytes of m polynomials
/// one after the other, and rows are of -1, 0 and 1.
///
/// # Panics
/// When rows differ in length, or `bytes` or `out` do not go with them.
pub fn ternary_products(bytes: &[u8], rows: &[&[i8]], out: &mut [u8]) {
    let Some(n) = rows.first().map(|row| row.len()) else { return };
    assert!(n > 0 && rows.iter().all(|row| row.len() == n), "rows of one length");
    assert!(bytes.len().is_multiple_of(n), "bytes of polynomials");
    assert_eq!(out.len(), bytes.len() / n * rows.len(), "a byte for each row and polynomial");
    dispatch::wrapping::ternary(bytes, rows, out);
}
