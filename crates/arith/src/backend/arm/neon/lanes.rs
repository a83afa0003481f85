//! Lanes of doubles: four in a pair of registers, of which there are 32.

use core::arch::aarch64::*;

pub(crate) use core::arch::aarch64::float64x2x2_t as V;

crate::backend::shared::double_lanes::double_lanes!("neon");

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn zero() -> V {
    set_double(0.0)
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn set_double(x: f64) -> V {
    V(vdupq_n_f64(x), vdupq_n_f64(x))
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn load_values(from: &[u64; LANES]) -> V {
    let [low, high] = [&from[..2], &from[2..]];
    // SAFETY: both slices are 16 readable bytes.
    unsafe { V(vld1q_f64(low.as_ptr().cast()), vld1q_f64(high.as_ptr().cast())) }
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn store_values(to: &mut [u64; LANES], x: V) {
    let (low, high) = to.split_at_mut(2);
    // SAFETY: both slices are 16 writable bytes.
    unsafe {
        vst1q_f64(low.as_mut_ptr().cast(), x.0);
        vst1q_f64(high.as_mut_ptr().cast(), x.1);
    }
}

/// Words below `2^52`, exactly.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn load_residues(from: &[u64; LANES]) -> V {
    let x = load_values(from);
    let double = |x| vcvtq_f64_u64(vreinterpretq_u64_f64(x));
    V(double(x.0), double(x.1))
}

/// Doubles in `(-q, q)` to words in `[0, q)`.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn store_residues(c: &Constants, to: &mut [u64; LANES], x: V) {
    let x = add(x, above(zero(), x, c.q));
    let word = |x| vreinterpretq_f64_u64(vcvtq_u64_f64(x));
    store_values(to, V(word(x.0), word(x.1)));
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn add(x: V, y: V) -> V {
    V(vaddq_f64(x.0, y.0), vaddq_f64(x.1, y.1))
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn sub(x: V, y: V) -> V {
    V(vsubq_f64(x.0, y.0), vsubq_f64(x.1, y.1))
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn product(x: V, y: V) -> V {
    V(vmulq_f64(x.0, y.0), vmulq_f64(x.1, y.1))
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn fused(x: V, y: V, z: V) -> V {
    V(vfmaq_f64(z.0, x.0, y.0), vfmaq_f64(z.1, x.1, y.1))
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn less(x: V, y: V, z: V) -> V {
    V(vfmsq_f64(z.0, x.0, y.0), vfmsq_f64(z.1, x.1, y.1))
}

/// As `-(z - x y)`, whose sign a sum takes up.
#[inline]
#[target_feature(enable = "neon")]
fn rest(x: V, y: V, z: V) -> V {
    let negated = less(x, y, z);
    V(vnegq_f64(negated.0), vnegq_f64(negated.1))
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn nearest(x: V) -> V {
    V(vrndnq_f64(x.0), vrndnq_f64(x.1))
}

/// `y` where `x` is above the limit, else 0.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn above(x: V, limit: V, y: V) -> V {
    let kept = |above, y| vreinterpretq_f64_u64(vandq_u64(above, vreinterpretq_u64_f64(y)));
    V(kept(vcgtq_f64(x.0, limit.0), y.0), kept(vcgtq_f64(x.1, limit.1), y.1))
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn reverse(x: V) -> V {
    V(vextq_f64::<1>(x.1, x.1), vextq_f64::<1>(x.0, x.0))
}

/// The roots of two nodes, each in two neighbouring lanes.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn two_nodes(from: &[f64; 2]) -> V {
    V(vdupq_n_f64(from[0]), vdupq_n_f64(from[1]))
}

/// Lower halves of both, then upper halves. Its own inverse.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn exchange_halves(a: V, b: V) -> (V, V) {
    (V(a.0, b.0), V(a.1, b.1))
}

/// Even elements of both interleaved, then odd ones. Its own inverse.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn exchange_parity(a: V, b: V) -> (V, V) {
    (V(vtrn1q_f64(a.0, b.0), vtrn1q_f64(a.1, b.1)), V(vtrn2q_f64(a.0, b.0), vtrn2q_f64(a.1, b.1)))
}
