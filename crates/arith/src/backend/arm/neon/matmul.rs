//! Word scan: eight words of 32 bits in two registers, or four of 64.

use core::arch::aarch64::*;

use core::arch::aarch64::uint32x4x2_t as Words;

crate::backend::shared::matmul::word_scans!("neon");

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 32]) -> Words {
    let [low, high] = bytemuck::cast_ref::<_, [[u8; 16]; 2]>(bytes);
    // SAFETY: both references cover 16 readable bytes, and bytes have no alignment.
    let [low, high] = unsafe { [vld1q_u8(low.as_ptr()), vld1q_u8(high.as_ptr())] };
    Words(vreinterpretq_u32_u8(low), vreinterpretq_u32_u8(high))
}

#[inline]
#[target_feature(enable = "neon")]
fn store<T: bytemuck::Pod>(to: &mut [T], x: Words) {
    let [low, high] = &mut bytemuck::cast_slice_mut::<_, [u8; 16]>(to)[..2] else { unreachable!() };
    // SAFETY: both references cover 16 writable bytes, and bytes have no alignment.
    unsafe {
        vst1q_u8(low.as_mut_ptr(), vreinterpretq_u8_u32(x.0));
        vst1q_u8(high.as_mut_ptr(), vreinterpretq_u8_u32(x.1));
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn zero_words() -> Words {
    set_short(0)
}

#[inline]
#[target_feature(enable = "neon")]
fn set_short(q: i32) -> Words {
    Words(vdupq_n_u32(q as u32), vdupq_n_u32(q as u32))
}

#[inline]
#[target_feature(enable = "neon")]
fn multiply_short(x: Words, q: Words) -> Words {
    Words(vmulq_u32(x.0, q.0), vmulq_u32(x.1, q.1))
}

#[inline]
#[target_feature(enable = "neon")]
fn add_short(x: Words, y: Words) -> Words {
    Words(vaddq_u32(x.0, y.0), vaddq_u32(x.1, y.1))
}

#[inline]
#[target_feature(enable = "neon")]
fn add_long(x: Words, y: Words) -> Words {
    let sum =
        |x, y| vreinterpretq_u32_u64(vaddq_u64(vreinterpretq_u64_u32(x), vreinterpretq_u64_u32(y)));
    Words(sum(x.0, y.0), sum(x.1, y.1))
}

#[inline]
#[target_feature(enable = "neon")]
fn keep_24(x: Words) -> Words {
    let mask = vdupq_n_u32(0xff_ffff);
    Words(vandq_u32(x.0, mask), vandq_u32(x.1, mask))
}

/// Eight 3-byte words in 4-byte lanes, the top byte zero: the first four and 4 bytes behind them,
/// then the last four and 4 bytes before them.
#[inline]
#[target_feature(enable = "neon")]
fn spread(words: &[u8; 24]) -> Words {
    const FIRST: [u8; 16] = [0, 1, 2, 255, 3, 4, 5, 255, 6, 7, 8, 255, 9, 10, 11, 255];
    const LAST: [u8; 16] = [4, 5, 6, 255, 7, 8, 9, 255, 10, 11, 12, 255, 13, 14, 15, 255];
    let (low, high) = (&words[..16], &words[8..]);
    // SAFETY: all of these are 16 readable bytes.
    let [low, high, first, last] = unsafe {
        [low.as_ptr(), high.as_ptr(), FIRST.as_ptr(), LAST.as_ptr()].map(|at| vld1q_u8(at))
    };
    Words(
        vreinterpretq_u32_u8(vqtbl1q_u8(low, first)),
        vreinterpretq_u32_u8(vqtbl1q_u8(high, last)),
    )
}

/// Sums of products modulo `2^64`, in two parts that are put together at the end: `low` as it is,
/// two words a register, and `crossed`, modulo `2^32`, above it.
#[derive(Clone, Copy)]
struct Product {
    low: uint64x2x2_t,
    crossed: uint32x4_t,
}

impl Product {
    #[inline]
    #[target_feature(enable = "neon")]
    fn zero() -> Self {
        let zero = vdupq_n_u64(0);
        Product { low: uint64x2x2_t(zero, zero), crossed: vdupq_n_u32(0) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn total(self) -> Words {
        let total = |low, crossed| {
            let crossed = vshlq_n_u64::<32>(vmovl_u32(crossed));
            vreinterpretq_u32_u64(vaddq_u64(low, crossed))
        };
        Words(
            total(self.low.0, vget_low_u32(self.crossed)),
            total(self.low.1, vget_high_u32(self.crossed)),
        )
    }
}

/// A query's halves in every lane.
#[inline]
#[target_feature(enable = "neon")]
fn broadcast_u64(q: i64) -> [uint32x4_t; 2] {
    [vdupq_n_u32(q as u32), vdupq_n_u32((q as u64 >> 32) as u32)]
}

/// Both factors: [`add_u64`] multiplies by instructions that add at once.
type Factors = (Words, [uint32x4_t; 2]);

#[inline]
#[target_feature(enable = "neon")]
fn multiply_u64(x: Words, q: [uint32x4_t; 2]) -> Factors {
    (x, q)
}

#[inline]
#[target_feature(enable = "neon")]
fn add_u64(sum: Product, (x, q): Factors) -> Product {
    let (low, high) = (vuzp1q_u32(x.0, x.1), vuzp2q_u32(x.0, x.1));
    Product {
        low: uint64x2x2_t(
            vmlal_u32(sum.low.0, vget_low_u32(low), vget_low_u32(q[0])),
            vmlal_high_u32(sum.low.1, low, q[0]),
        ),
        crossed: vmlaq_u32(vmlaq_u32(sum.crossed, low, q[1]), high, q[0]),
    }
}
