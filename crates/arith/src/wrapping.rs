//! Wrapping sums: words with weights, and bytes of polynomials with a ternary row, enter; sums modulo
//! a power of two leave. Key owner's side, in constant time.

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

/// A row of ternary values as two masks a byte: which are not 0, and which are -1.
pub struct TernaryRow {
    nonzero: Vec<u8>,
    negative: Vec<u8>,
}

impl TernaryRow {
    /// Room for `length` values, all of them 0.
    pub fn zeroed(length: usize) -> Self {
        TernaryRow { nonzero: vec![0; length], negative: vec![0; length] }
    }

    /// Takes the row that gives coefficient `place` of a negacyclic product with `secret`:
    /// `s[v - j]` at `j <= v`, and `-s[n + v - j]` beyond.
    ///
    /// # Panics
    /// When `secret` has another length, or `place` lies beyond it.
    pub fn set_negacyclic(&mut self, secret: &[i8], place: usize) {
        assert!(secret.len() == self.nonzero.len() && place < secret.len(), "a row of the secret");
        let (head, tail) = secret.split_at(place + 1);
        let values = head.iter().rev().copied().chain(tail.iter().rev().map(|value| -value));
        let masks = self.nonzero.iter_mut().zip(&mut self.negative);
        for ((nonzero, negative), value) in masks.zip(values) {
            *nonzero = (value as u8 & 1).wrapping_neg();
            *negative = (value as u8 >> 7).wrapping_neg();
        }
    }

    /// `out[i] = sum_j t[j] a_i[j]` modulo 2^8; `bytes` are the low bytes of one polynomial after
    /// the other.
    ///
    /// # Panics
    /// When `bytes` is not one polynomial of the row's length for each of `out`.
    pub fn products(&self, bytes: &[u8], out: &mut [u8]) {
        assert_eq!(bytes.len(), self.nonzero.len() * out.len(), "bytes of polynomials");
        dispatch::wrapping::ternary(bytes, &self.nonzero, &self.negative, out);
    }
}

impl Drop for TernaryRow {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.nonzero);
        zeroize::Zeroize::zeroize(&mut self.negative);
    }
}

impl core::fmt::Debug for TernaryRow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "TernaryRow({} values, redacted)", self.nonzero.len())
    }
}
