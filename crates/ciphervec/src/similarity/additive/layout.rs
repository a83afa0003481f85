//! Where the coordinates of vectors are in ciphertexts, by the grid and the width of a message.
//!
//! # Layout `horizontal`
//!
//! With z = 2^B, coordinates are packed as Σ x_j z^j and weights in reverse order, Σ q_j z^(m−1−j):
//! coefficient m − 1 of the product is Σ x_j q_j. Coefficients beside it are inner products of x
//! with a shifted, shortened q, so that S bounds them too. A negative slot borrows one bit from the
//! next: slot k is (value ≫ Bk) + bit Bk − 1, with its sign (`slots.rs`).

use super::grid::Grid;
use crate::error::{Error, Result};
use core::str::FromStr;

/// How vectors are laid out in ciphertexts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Layout {
    /// One ciphertext a coordinate. Every scheme can do it, and the quickest for a single vector.
    #[default]
    Elements = 0,
    /// Coordinate i of many vectors in one ciphertext: the quickest and smallest for a gallery.
    Lanes = 1,
    /// Many coordinates of one vector in one ciphertext: small single vectors. A score is the
    /// middle coefficient of an integer product; its neighbours are hidden under noise.
    Horizontal = 2,
}

impl Layout {
    const ALL: [Layout; 3] = [Layout::Elements, Layout::Lanes, Layout::Horizontal];

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            Layout::Elements => "elements",
            Layout::Lanes => "lanes",
            Layout::Horizontal => "horizontal",
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| *layout as u8 == byte)
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|layout| layout.as_str() == name)
            .ok_or_else(|| Error::choice("layout", "elements, lanes or horizontal", name))
    }
}

/// The neighbours of a horizontal score are hidden under noise this many bits wider than they are.
pub(crate) const MASK_BITS: u32 = 60;
/// What a horizontal result leaves unused: a message that is not a result passes for one with
/// probability 2⁻³².
const SLACK_BITS: u32 = 32;
/// The most lanes in a ciphertext, so that two bytes count them.
const MAX_LANES: u32 = u16::MAX as u32;

/// A layout under one key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Packing {
    layout: Layout,
    rows: u32,
    lanes: u32,
    slots: u32,
    slot_bits: u32,
    result_bits: u32,
    message_bits: u32,
}

impl Packing {
    pub(super) fn new(layout: Layout, grid: &Grid, message_bits: u32) -> Result<Self> {
        let dimension = grid.dimension() as u32;
        let score = grid.score_bits();
        // One bit of guard between neighbours: a vector twice too long is found out, and they stay
        // whole.
        let guarded = score + 1;
        let short = |what, needed: u32| Error::Range {
            what,
            expected: format!(
                "at least {needed} bits at precision {} (take a longer key, a lower precision or layout elements)",
                grid.precision().as_str()
            ),
            actual: format!("{message_bits} bits"),
        };
        match layout {
            Layout::Elements if score > message_bits => {
                Err(short("the message of a scheme", score))
            }
            Layout::Elements => Ok(Packing {
                layout,
                rows: dimension,
                lanes: 1,
                slots: 1,
                slot_bits: score,
                result_bits: score,
                message_bits,
            }),
            Layout::Lanes => {
                let lanes = (message_bits / guarded).min(MAX_LANES);
                if lanes < 2 {
                    return Err(short("the message of a scheme with lanes", 2 * guarded));
                }
                Ok(Packing {
                    layout,
                    rows: dimension,
                    lanes,
                    slots: lanes,
                    slot_bits: guarded,
                    result_bits: lanes * guarded,
                    message_bits,
                })
            }
            Layout::Horizontal => {
                // Neighbours need no more room than the score: each is the product of the vector
                // with a shifted, shortened probe, and Cauchy–Schwarz holds for it too.
                let room = message_bits.saturating_sub(MASK_BITS + SLACK_BITS) / guarded;
                let most = room.div_ceil(2);
                if most < 2 {
                    let needed = 3 * guarded + MASK_BITS + SLACK_BITS;
                    return Err(short("the message of a scheme with layout horizontal", needed));
                }
                let rows = dimension.div_ceil(most);
                // As few coordinates a ciphertext as do with as many ciphertexts: exponents get
                // shorter.
                let slots = dimension.div_ceil(rows);
                let result_bits = guarded * (2 * slots - 1) + MASK_BITS;
                Ok(Packing {
                    layout,
                    rows,
                    lanes: 1,
                    slots,
                    slot_bits: guarded,
                    result_bits,
                    message_bits,
                })
            }
        }
    }

    /// Ciphertexts that a block of vectors takes.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Vectors in a block: K of layout `lanes`, otherwise one.
    pub fn lanes(&self) -> usize {
        self.lanes as usize
    }

    /// Integers side by side in a ciphertext: vectors in layout `lanes`, coordinates in layout
    /// `horizontal`.
    pub fn slots(&self) -> usize {
        self.slots as usize
    }

    /// Bits of one of them.
    pub fn slot_bits(&self) -> u32 {
        self.slot_bits
    }

    /// Blocks for so many vectors.
    pub fn blocks(&self, vectors: usize) -> usize {
        vectors.div_ceil(self.lanes())
    }

    /// Results are below `2^(result_bits - 1)` in absolute value.
    pub fn result_bits(&self) -> u32 {
        self.result_bits
    }

    #[doc(hidden)]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether the noise beside a score may move it by one.
    #[doc(hidden)]
    pub fn may_have_moved(&self) -> bool {
        self.layout == Layout::Horizontal && self.slots > 1
    }

    /// 64-bit words of a packed message.
    pub(super) fn words(&self) -> usize {
        match self.layout {
            Layout::Elements => 1,
            _ => (self.message_bits as usize).div_ceil(64),
        }
    }

    /// Where the score starts in a horizontal result.
    #[doc(hidden)]
    pub fn middle(&self) -> usize {
        self.slot_bits as usize * (self.slots() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;
    use crate::similarity::additive::GridPrecision;

    fn packing(
        layout: Layout,
        dimension: u32,
        precision: GridPrecision,
        bits: u32,
    ) -> Result<Packing> {
        Packing::new(layout, &Grid::new(dimension, Metric::Cosine, precision), bits)
    }

    #[test]
    fn slots_a_ciphertext() {
        use GridPrecision::{High, Small, Standard};
        // Paillier at 2,048 and 3,072 bits, Okamoto–Uchiyama with |n| = 2,048, Damgård–Jurik with s
        // = 2.
        for (bits, lanes) in [(2047, 63), (3071, 95), (617, 19), (512, 16), (4095, 127)] {
            assert_eq!(packing(Layout::Lanes, 512, Standard, bits).unwrap().lanes(), lanes);
        }
        assert_eq!(packing(Layout::Lanes, 512, Small, 2047).unwrap().lanes(), 78);
        assert_eq!(packing(Layout::Lanes, 512, High, 2047).unwrap().lanes(), 21);
        for (bits, rows, slots) in [(2047, 17, 31), (3071, 11, 47), (617, 64, 8)] {
            let packing = packing(Layout::Horizontal, 512, Standard, bits).unwrap();
            assert_eq!((packing.rows(), packing.slots()), (rows, slots), "{bits}");
            assert!(packing.result_bits() + SLACK_BITS <= bits);
        }
        let tiny = packing(Layout::Horizontal, 3, Standard, 2047).unwrap();
        assert_eq!((tiny.rows(), tiny.slots(), tiny.middle()), (1, 3, 64));
    }

    #[test]
    fn short_messages_are_refused_with_a_way_out() {
        let refused = |layout, precision, bits| {
            packing(layout, 512, precision, bits).unwrap_err().to_string()
        };
        assert!(packing(Layout::Elements, 512, GridPrecision::Standard, 31).is_ok());
        let text = refused(Layout::Elements, GridPrecision::Standard, 30);
        assert!(text.contains("at least 31 bits") && text.contains("30 bits"), "{text}");
        assert!(packing(Layout::Elements, 512, GridPrecision::Small, 25).is_ok());
        let text = refused(Layout::Lanes, GridPrecision::Small, 32);
        assert!(text.contains("layout elements"), "{text}");
        let text = refused(Layout::Horizontal, GridPrecision::Small, 60);
        assert!(text.contains("layout elements"), "{text}");
        assert!(packing(Layout::Horizontal, 512, GridPrecision::High, 3 * 96 + 92).is_ok());
        assert!(packing(Layout::Horizontal, 512, GridPrecision::High, 3 * 96 + 91).is_err());
    }
}
