//! Limbs: multi-limb numbers and moduli as Montgomery kernels hold them. Both sides.

/// 64 bytes of a group of eight residues. A group is as many rows as a residue has limbs; in it the
/// limbs of the first `WIDTH` residues come first, `WIDTH` of one weight side by side.
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Row(pub [u64; 8]);

/// What a product needs to know of its modulus, limbs as the back-end's lanes hold them.
#[derive(Debug)]
pub(crate) struct Reduction {
    /// Digits of an element, in base `n`.
    pub digits: usize,
    /// Limbs of a digit, a multiple of the tile.
    pub limbs: usize,
    /// The limbs of `n`.
    pub modulus: Vec<u64>,
    /// `-1 / n` modulo the radix.
    pub inverse: u64,
    /// What keeps `S_t - m_{t-1}` from falling below zero, limb by limb, for `t = 1` and for
    /// `t > 1`; empty for signed limbs. The first is a multiple `c n`, which adds `c` to the digit
    /// above; the second is less by that `c`.
    pub offsets: [Vec<u64>; 2],
}

/// How a back-end's Montgomery kernels hold numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimbFormat {
    /// Bits of a limb.
    pub radix: u32,
    /// Residues whose limbs lie side by side.
    pub width: usize,
    /// The number of limbs is a multiple of it.
    pub tile: usize,
    /// Whether limbs lie around zero, not above it.
    pub signed: bool,
    /// A limb as the kernels store it.
    pub encode: fn(i64) -> u64,
    /// And back.
    pub decode: fn(u64) -> i64,
}
