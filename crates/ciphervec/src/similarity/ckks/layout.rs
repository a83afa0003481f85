//! Where the coordinates of vectors are in ciphertexts, by an array's shape and the ring.
//!
//! In layout `coefficients` the left side of row k is `Σ_i x_i X^(p_k + i)` and the right side
//! `Σ_j y_j X^(p_k − j)`, so that the product has `x·y` at the coefficient `2 p_k` and, from rows k
//! ≠ l, other sums at `p_k + p_l + i − j` with `|i − j| < d`. With `p_k = d·a_k` those never hit a
//! result as long as `a_k + a_l = 2 a_m` has no solution but k = l = m: the places `a_k` hold no
//! three terms in arithmetic progression. Numbers without a digit 2 in base 3 are such: 0, 1, 3, 4, 9,
//! 10, 12, 13, … With `2 a_k < N/d` nothing wraps around.

use crate::error::{Error, Result};
use crate::index::spec::MAX_DIMENSION;
use core::str::FromStr;

/// How vectors are laid out in ciphertexts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum ArrayLayout {
    /// Coordinates in slots, as many vectors in a ciphertext as fit. Everything can be computed;
    /// sums over coordinates take rotations, and so Galois keys.
    #[default]
    Slots = 0,
    /// Coordinates in coefficients: a dot product is one product of polynomials. No key at all on
    /// the server.
    Coefficients = 1,
    /// One ciphertext a coordinate, whose slots are the vectors of a batch. No Galois key; large.
    Single = 2,
}

impl ArrayLayout {
    const ALL: [ArrayLayout; 3] =
        [ArrayLayout::Slots, ArrayLayout::Coefficients, ArrayLayout::Single];

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            ArrayLayout::Slots => "slots",
            ArrayLayout::Coefficients => "coefficients",
            ArrayLayout::Single => "single",
        }
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| *layout as u8 == byte)
    }
}

impl FromStr for ArrayLayout {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|layout| layout.as_str() == name)
            .ok_or_else(|| Error::choice("layout", "slots, coefficients or single", name))
    }
}

/// Which side of a product a vector in layout `coefficients` can stand on. Without a meaning in the
/// other layouts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Role {
    /// Encrypted twice, for both sides: compares with anything, and with itself.
    #[default]
    Both = 0,
    /// For the left side: half the size.
    Left = 1,
    /// For the right side: half the size.
    Right = 2,
}

impl Role {
    const ALL: [Role; 3] = [Role::Both, Role::Left, Role::Right];

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Both => "both",
            Role::Left => "left",
            Role::Right => "right",
        }
    }

    /// Whether the side `left` is there.
    pub fn has_left(self) -> bool {
        self != Role::Right
    }

    /// Whether the side `right` is there.
    pub fn has_right(self) -> bool {
        self != Role::Left
    }
}

impl FromStr for Role {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == name)
            .ok_or_else(|| Error::choice("role", "left, right or both", name))
    }
}

/// What several vectors of layout `coefficients` in one ciphertext are compared with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Spread {
    /// With as many vectors, row by row, or with a single one.
    #[default]
    Pairs = 0,
    /// With a single vector only: no place is left empty.
    Gallery = 1,
    /// Scores of pairs, at twice the places of their vectors.
    Scores = 2,
}

impl Spread {
    const ALL: [Spread; 3] = [Spread::Pairs, Spread::Gallery, Spread::Scores];

    /// The name used in every API.
    pub fn as_str(self) -> &'static str {
        match self {
            Spread::Pairs => "pairs",
            Spread::Gallery => "gallery",
            Spread::Scores => "scores",
        }
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|spread| *spread as u8 == byte)
    }
}

impl FromStr for Spread {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        [Spread::Pairs, Spread::Gallery]
            .into_iter()
            .find(|spread| spread.as_str() == name)
            .ok_or_else(|| Error::choice("spread", "pairs or gallery", name))
    }
}

/// Place k of places no three of which are in arithmetic progression: k in binary, read in base 3.
fn apart(k: usize) -> usize {
    let (mut rest, mut power, mut place) = (k, 1, 0);
    while rest > 0 {
        place += power * (rest & 1);
        rest >>= 1;
        power *= 3;
    }
    place
}

/// How many places `d·a_k` a ring of `blocks` blocks has room for, such that `2·a_k < blocks`.
fn pairs_within(blocks: usize) -> usize {
    (0..blocks).take_while(|&k| 2 * apart(k) < blocks).count()
}

/// The shape of an array and where it lies under one parameter set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArrayPacking {
    pub(super) layout: ArrayLayout,
    pub(super) spread: Spread,
    pub(super) rows: usize,
    pub(super) dimension: usize,
    /// Slots or coefficients from one row's place to the next.
    pub(super) stride: usize,
    /// Most rows in a ciphertext.
    pub(super) capacity: usize,
    /// Whether the rows are a batch, be it of one, and not a lone vector.
    pub(super) batch: bool,
    /// Whether each row is one number that was computed of a vector.
    pub(super) scores: bool,
}

/// Most rows of an array.
pub const MAX_ROWS: usize = 1 << 24;

impl ArrayPacking {
    /// Where `rows` vectors of `dimension` lie in ciphertexts of `degree` coefficients and `slots`
    /// slots.
    ///
    /// # Errors
    /// [`Error::Range`] for a shape of nothing, or for vectors that a ciphertext has no room for;
    /// [`Error::CkksSimilarity`] for layout `coefficients` in a ring with as many slots as
    /// coefficients: its products are those of cosines, and hold no dot products.
    pub fn new(
        layout: ArrayLayout,
        spread: Spread,
        (rows, dimension): (usize, usize),
        (degree, slots): (usize, usize),
    ) -> Result<Self> {
        if layout == ArrayLayout::Coefficients && slots == degree {
            return Err(Error::CkksSimilarity {
                operation: "layout coefficients",
                detail: "a context of ring standard is needed, and this one is of ring real; say \
                         ring=\"standard\" when it is made, or take layout slots or single"
                    .to_owned(),
            });
        }
        let room = match layout {
            ArrayLayout::Slots => slots,
            ArrayLayout::Coefficients => degree,
            ArrayLayout::Single => MAX_DIMENSION as usize,
        };
        if rows == 0 || rows > MAX_ROWS {
            return Err(Error::Range {
                what: "the number of vectors",
                expected: format!("1 to {MAX_ROWS}"),
                actual: rows.to_string(),
            });
        }
        if dimension == 0 || dimension > room {
            return Err(Error::Range {
                what: "the dimension",
                expected: format!(
                    "1 to {room} in layout {} under these parameters (degree {degree}, {slots} slots)",
                    layout.as_str()
                ),
                actual: dimension.to_string(),
            });
        }
        let (stride, capacity) = match layout {
            ArrayLayout::Slots => {
                let width = dimension.next_power_of_two();
                (width, slots / width)
            }
            ArrayLayout::Coefficients if spread == Spread::Gallery => {
                (dimension, degree / dimension)
            }
            ArrayLayout::Coefficients => (dimension, pairs_within(degree / dimension)),
            ArrayLayout::Single => (1, slots),
        };
        let spread = if layout == ArrayLayout::Coefficients { spread } else { Spread::Pairs };
        let batch = rows > 1;
        Ok(ArrayPacking { layout, spread, rows, dimension, stride, capacity, batch, scores: false })
    }

    /// The packing that bytes describe.
    pub(super) fn read(
        (layout, spread): (ArrayLayout, Spread),
        (rows, dimension, stride): (usize, usize, usize),
        (batch, scores): (bool, bool),
        ring: (usize, usize),
    ) -> Result<Self> {
        let places = if spread == Spread::Scores { Spread::Pairs } else { spread };
        let whole = if layout == ArrayLayout::Single { dimension } else { stride };
        let full = ArrayPacking::new(layout, places, (rows, whole), ring)?;
        let packing = ArrayPacking { dimension, spread, batch, scores, ..full };
        let expected = match (scores, layout) {
            (true, _) => dimension == 1,
            (false, ArrayLayout::Slots) => dimension.next_power_of_two() == stride,
            (false, _) => dimension == whole && spread != Spread::Scores,
        };
        let fits = expected
            && full.stride == stride
            && (rows == 1 || batch)
            && (full.spread == places || layout == ArrayLayout::Coefficients);
        if fits {
            return Ok(packing);
        }
        Err(Error::Range {
            what: "the shape of an encrypted array",
            expected: "one that this release writes".to_owned(),
            actual: format!("{rows} × {dimension}, {stride} apart"),
        })
    }

    /// The layout.
    pub fn layout(&self) -> ArrayLayout {
        self.layout
    }

    /// What the rows can be compared with, in layout `coefficients`.
    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// Vectors.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Coordinates of each.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Whether the rows are a batch, be it of one, and not a lone vector.
    pub fn is_batch(&self) -> bool {
        self.batch
    }

    /// Whether each row is one number that was computed of a vector.
    pub fn is_scores(&self) -> bool {
        self.scores
    }

    /// Most vectors that share a ciphertext.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Ciphertexts of one side.
    pub fn ciphertexts(&self) -> usize {
        match self.layout {
            ArrayLayout::Single => self.dimension * self.blocks(),
            _ => self.blocks(),
        }
    }

    /// Runs of rows that share ciphertexts.
    pub(super) fn blocks(&self) -> usize {
        self.rows.div_ceil(self.capacity)
    }

    /// Slots of each ciphertext: as few as hold its rows, and the same in all.
    pub(super) fn slots(&self) -> usize {
        self.stride * self.rows.min(self.capacity).next_power_of_two()
    }

    /// The slot or coefficient of row k of a block.
    #[doc(hidden)]
    pub fn place(&self, k: usize) -> usize {
        match (self.layout, self.spread) {
            (ArrayLayout::Coefficients, Spread::Pairs) => self.stride * apart(k),
            (ArrayLayout::Coefficients, Spread::Scores) => self.stride * 2 * apart(k),
            _ => self.stride * k,
        }
    }

    /// The same places with one number each: what a dot product of these rows gives.
    pub(super) fn scores(&self) -> ArrayPacking {
        let spread = match (self.layout, self.spread) {
            (ArrayLayout::Coefficients, Spread::Pairs) => Spread::Scores,
            (_, spread) => spread,
        };
        ArrayPacking { spread, ..self.column() }
    }

    /// One number a row, at the places of the rows.
    pub(super) fn column(&self) -> ArrayPacking {
        ArrayPacking { dimension: 1, scores: true, ..*self }
    }

    /// The same as a batch, if either is one.
    #[doc(hidden)]
    pub fn batched(&self, batch: bool) -> ArrayPacking {
        ArrayPacking { batch: self.batch || batch, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_three_places_are_in_progression() {
        let places: Vec<usize> = (0..40).map(apart).collect();
        assert_eq!(places[..8], [0, 1, 3, 4, 9, 10, 12, 13]);
        for (k, a) in places.iter().enumerate() {
            for (l, b) in places.iter().enumerate() {
                assert!(k == l || !places.iter().any(|c| a + b == 2 * c), "{a} {b}");
            }
        }
    }

    /// The rule itself, on schoolbook exponents: which pairs of coordinates of which rows meet at a
    /// result.
    #[test]
    fn products_of_other_rows_miss_every_result() {
        for (degree, dimension) in [(64, 64), (64, 9), (64, 8), (96, 5), (128, 4)] {
            let ring = (degree, degree / 2);
            let full = |spread| {
                let one =
                    ArrayPacking::new(ArrayLayout::Coefficients, spread, (1, dimension), ring)
                        .unwrap();
                ArrayPacking { rows: one.capacity, ..one }
            };
            let lone = ArrayPacking { rows: 1, ..full(Spread::Pairs) };
            let cases = [
                (full(Spread::Pairs), full(Spread::Pairs), full(Spread::Pairs).scores()),
                (lone, full(Spread::Gallery), full(Spread::Gallery).scores()),
                (full(Spread::Pairs), lone, full(Spread::Pairs)),
            ];
            for (left, right, results) in cases {
                for row in 0..left.rows.max(right.rows) {
                    let goal = results.place(row) % degree;
                    for (k, l) in (0..left.rows).flat_map(|k| (0..right.rows).map(move |l| (k, l)))
                    {
                        let mine = (left.rows == 1 || k == row) && (right.rows == 1 || l == row);
                        for (i, j) in
                            (0..dimension).flat_map(|i| (0..dimension).map(move |j| (i, j)))
                        {
                            let exponent = left.place(k) + right.place(l) + i + 2 * degree - j;
                            let hit = exponent % degree == goal;
                            assert_eq!(hit, mine && i == j, "{dimension} {row} {k} {l} {i} {j}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn capacities() {
        let of = |layout, spread, dimension| {
            ArrayPacking::new(layout, spread, (1, dimension), (4096, 2048)).unwrap().capacity()
        };
        assert_eq!(of(ArrayLayout::Slots, Spread::Pairs, 100), 16);
        assert_eq!(of(ArrayLayout::Coefficients, Spread::Pairs, 2048), 1);
        assert_eq!(of(ArrayLayout::Coefficients, Spread::Pairs, 128), 8);
        assert_eq!(of(ArrayLayout::Coefficients, Spread::Gallery, 128), 32);
        assert_eq!(of(ArrayLayout::Single, Spread::Pairs, 128), 2048);
    }

    #[test]
    fn too_long_a_vector_is_refused_with_the_room_there_is() {
        let text = ArrayPacking::new(ArrayLayout::Slots, Spread::Pairs, (1, 2049), (4096, 2048))
            .unwrap_err()
            .to_string();
        assert!(text.contains("1 to 2048") && text.contains("2049"), "{text}");
        assert!(
            ArrayPacking::new(ArrayLayout::Coefficients, Spread::Pairs, (1, 4096), (4096, 2048))
                .is_ok()
        );
        assert!(
            ArrayPacking::new(ArrayLayout::Slots, Spread::Pairs, (0, 4), (4096, 2048)).is_err()
        );
        let real =
            ArrayPacking::new(ArrayLayout::Coefficients, Spread::Pairs, (1, 4), (4096, 4096));
        assert!(real.unwrap_err().to_string().contains("ring standard"));
    }
}
