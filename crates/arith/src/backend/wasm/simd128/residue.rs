//! Products of signed words with fixed factors modulo a prime below 2^50, one at a time.
//!
//! WebAssembly has no upper half of a product of 64 bits, so quotients are products of doubles, and
//! what is left is exact modulo 2^64, which is more than it needs.
//!
//! # Bounds
//!
//! WebAssembly has no upper half of a 64-bit product, and SIMD128 has no fused multiply-add. So the
//! kernel uses words, one at a time: b = round(y · (w/q)) in doubles, where adding 1.5 · 2^52
//! rounds and leaves the integer in the low bits, then y w − b q modulo 2^64, exact because it is
//! small.
//!
//! **Bounds** (`residue.rs`). The factor is centred, |w| ≤ q/2, and q < 2^50. For |y| ≤ k q, k ≤ 4,
//! the quotient is at most 2^51, and its two roundings err by less than 2^-52 of it: at most k/8.
//! So |y w − b q| ≤ q (1/2 + k/8), below q for k = 4. Values are signed; a butterfly adds that to
//! x.
//!
//! - *Forward*, two stages at a time: the x of the first go from 4q to 2q, their y stay: 2 + 1 = 3,
//!   then 3 + 7/8 < 4.
//! - *Back*: from 1, sums are 2 and products 3/4. Then sums of sums are 4, reduced by a quotient of
//!   their own; sums of products are 3/2, brought below 1 as above; differences times a root are
//!   below 1 from up to 4.
//! - *Two unprepared residues* x y: the quotient is x y (1/q), three roundings, off by less than
//!   3/8 before it is rounded. Sums of products (`dot`, `dot_pair`) add up to 2^12 of them, below
//!   7/8 q each, as signed words, and reduce once.
//!
//! Constants of 64 bits are hidden from the compiler, because an engine puts each together at every
//! use; so b is multiplied with the bits of 1.5 · 2^52 in it, and their product with q is added
//! back. Words are read and written as volatile, or a compiler with vectors would make these loops
//! slower. Corrections are a shift and an AND, because engines without a conditional move turn
//! minima into branches.

use core::hint::black_box;

use crate::modulus::Modulus;

/// 1.5 · 2^52: adding it rounds a double up to 2^51 in size to the nearest integer, which then stands
/// in its low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// A fixed factor, centred, and its quotient by the modulus.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Root {
    value: i64,
    ratio: f64,
}

impl Root {
    pub(super) fn new(m: &Modulus, value: u64) -> Self {
        let value = m.to_centered(value);
        Root { value, ratio: value as f64 / m.value() as f64 }
    }
}

/// A word that is there. Volatile, because else the compiler makes vectors of loops over words, which
/// have products of eight instructions and shifts of nearly as many.
#[inline(always)]
pub(super) fn read<T: Copy>(word: &T) -> T {
    // SAFETY: a reference may be read from.
    unsafe { core::ptr::read_volatile(word) }
}

/// Puts a word where one is, as [`read`] takes it.
#[inline(always)]
pub(super) fn write<T: Copy>(word: &mut T, value: T) {
    // SAFETY: a unique reference may be written to, and what was there needs no drop.
    unsafe { core::ptr::write_volatile(word, value) }
}

/// A modulus below 2^50.
#[derive(Clone, Copy)]
pub(super) struct Prime {
    q: i64,
    reciprocal: f64,
    /// [`ROUND`], and its bits times `q`. An engine would put such constants together in registers at
    /// every use.
    round: f64,
    excess: i64,
}

impl Prime {
    pub(super) fn new(m: &Modulus) -> Self {
        let q = m.value() as i64;
        let excess = (ROUND.to_bits() as i64).wrapping_mul(q);
        Prime {
            q,
            reciprocal: 1.0 / m.value() as f64,
            round: black_box(ROUND),
            excess: black_box(excess),
        }
    }

    /// `product` less `q` times the integer nearest to a quotient up to 2^51 in size.
    #[inline(always)]
    fn less(self, product: i64, quotient: f64) -> i64 {
        let nearest = (quotient + self.round).to_bits() as i64;
        product.wrapping_add(self.excess).wrapping_sub(nearest.wrapping_mul(self.q))
    }

    /// `y w`, below `q (1/2 + k / 8)` in size for `y` up to `k q`, `k <= 4`.
    #[inline(always)]
    pub(super) fn times(self, y: i64, w: Root) -> i64 {
        self.less(y.wrapping_mul(w.value), y as f64 * w.ratio)
    }

    /// `x y`, up to `7/8 q` in size, for residues in `[0, q)`: the quotient is off by less than 3/8
    /// before it is rounded.
    #[inline(always)]
    pub(super) fn product(self, x: u64, y: u64) -> i64 {
        let (x, y) = (x as i64, y as i64);
        self.less(x.wrapping_mul(y), x as f64 * y as f64 * self.reciprocal)
    }

    /// `x y` in `[0, q)` for residues in `[0, q)`.
    #[inline(always)]
    pub(super) fn multiply(self, x: u64, y: u64) -> u64 {
        self.canonical(self.product(x, y))
    }

    /// `[0, q)` to what is nearest to 0.
    #[inline(always)]
    pub(super) fn centred(self, x: u64) -> i64 {
        let x = x as i64;
        x - (((self.q / 2 - x) >> 63) & self.q)
    }

    /// `x + y` in `[0, q)` for residues in `[0, q)`. The portable minimum is a branch here.
    #[inline(always)]
    pub(super) fn add(self, x: u64, y: u64) -> u64 {
        self.canonical(x as i64 + y as i64 - self.q)
    }

    /// Up to `2^50` or `2^12 q` in size, whichever is more, to less than `q`.
    #[inline(always)]
    pub(super) fn reduce(self, x: i64) -> i64 {
        self.less(x, x as f64 * self.reciprocal)
    }

    /// Up to `2 n q` in size to no more than `n q`.
    #[inline(always)]
    pub(super) fn halve(self, x: i64, n: i64) -> i64 {
        x - n * self.q + ((x >> 63) & (2 * n * self.q))
    }

    /// `(-q, q)` to `[0, q)`.
    #[inline(always)]
    pub(super) fn canonical(self, x: i64) -> u64 {
        (x + ((x >> 63) & self.q)) as u64
    }

    /// Up to `4q` in size, less than that, to `[0, q)`.
    #[inline(always)]
    pub(super) fn finish(self, x: i64) -> u64 {
        self.canonical(self.halve(self.halve(x, 2), 1))
    }

    /// `[0, 2q)` to `[-q, q)`.
    #[inline(always)]
    pub(super) fn centre_lazy(self, x: i64) -> i64 {
        x - self.q
    }
}
