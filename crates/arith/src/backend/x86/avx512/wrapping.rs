//! Wrapping sums: words or bytes and weights enter, sums modulo a power of two leave, sixteen words at a
//! time.

use crate::backend::portable::wrapping;

#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(crate) fn dots_u32(x: &[u32], weights: &[u32], out: &mut [u32]) {
    wrapping::dots_u32(x, weights, out);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(crate) fn dots_u64(x: &[u64], weights: &[u64], out: &mut [u64]) {
    wrapping::dots_u64(x, weights, out);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(crate) fn ternary(bytes: &[u8], nonzero: &[u8], negative: &[u8], out: &mut [u8]) {
    wrapping::ternary(bytes, nonzero, negative, out);
}
