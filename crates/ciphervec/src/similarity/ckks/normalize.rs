//! Encrypted normalisation, for the server: scores of vectors whose lengths lie in a known interval, without normalised vectors
//! or a root at the key owner.
//!
//! `x·y / (|x| |y|)` takes an inverse square root of each squared length,
//! `|x − y| = |x − y|² / √|x − y|²` one of the squared distance, by a polynomial and Newton steps
//! on the interval. Outside of it the result means nothing, and nobody but the owner can tell: the
//! squares go along with it, for the owner to look at ([`super::origin`]).

use super::array::EncryptedArray;
use super::layout::ArrayLayout;
use super::origin::Condition;
use super::plain::PlainRows;
use super::server::{Server, slotwise};
use crate::error::Result;
use ciphervec_he::ckks::{Ciphertext, InverseSquareRoot};

/// Where the lengths of vectors, or their distances, are known to lie.
#[derive(Clone, Debug)]
pub struct Lengths {
    root: InverseSquareRoot,
    /// The interval of the squares.
    squares: [f64; 2],
}

impl Lengths {
    /// Lengths from `low` to `high`, whose inverses are right to `2^-bits` of them before noise.
    ///
    /// # Errors
    /// [`ciphervec_he::Error::Range`] unless 0 < `low` < `high`, and for a precision out of reach.
    pub fn new(low: f64, high: f64, bits: u32) -> Result<Self> {
        let squares = [low * low, high * high];
        Ok(Lengths { root: InverseSquareRoot::new(squares[0], squares[1], bits)?, squares })
    }

    /// Levels that [`Server::cosine_within`] spends; one more where several vectors share a
    /// ciphertext of layout `slots`.
    pub fn cosine_depth(&self, batch: bool) -> usize {
        // The products, 1/|x|, 1/|y|, and the two products with them.
        usize::from(batch) + self.root.depth() + 3
    }

    /// Levels that [`Server::distance_within`] spends; likewise.
    pub fn distance_depth(&self, batch: bool) -> usize {
        usize::from(batch) + self.root.depth() + 2
    }
}

impl Server {
    /// The cosine of vectors of any lengths in an interval, each of `a` with the one beside it in
    /// `b`.
    ///
    /// # Errors
    /// As [`Self::dot`]; [`crate::Error::CkksSimilarity`] in layout `coefficients`, and
    /// [`ciphervec_he::Error::Level`] with fewer levels than [`Lengths::cosine_depth`].
    pub fn cosine_within(
        &self,
        a: &EncryptedArray,
        b: &EncryptedArray,
        lengths: &Lengths,
    ) -> Result<EncryptedArray> {
        let half = self.multiply(&self.dot(a, b)?, &self.inverse_lengths(a, lengths)?)?;
        self.multiply(&half, &self.inverse_lengths(b, lengths)?)?.bounded(1.0)
    }

    /// The same with plain vectors of any length.
    ///
    /// # Errors
    /// As [`Self::cosine_within`], and [`crate::Error::ZeroVector`].
    pub fn cosine_within_plain(
        &self,
        a: &EncryptedArray,
        plain: &PlainRows<'_>,
        lengths: &Lengths,
    ) -> Result<EncryptedArray> {
        slotwise("cosine", &a.packing)?;
        let unit = plain.normalized()?;
        let unit = PlainRows::new(&unit, plain.rows(), plain.dimension())?;
        let unit = if plain.is_batch() { unit.as_batch() } else { unit };
        let dot = self.dot_plain(a, &unit)?;
        self.multiply(&dot, &self.inverse_lengths(a, lengths)?)?.bounded(1.0)
    }

    /// Euclidean distances in an interval.
    ///
    /// # Errors
    /// As [`Self::cosine_within`].
    pub fn distance_within(
        &self,
        a: &EncryptedArray,
        b: &EncryptedArray,
        lengths: &Lengths,
    ) -> Result<EncryptedArray> {
        slotwise("distance", &a.packing)?;
        self.root(&self.squared_distance(a, b)?, lengths)
    }

    /// The same from plain vectors.
    ///
    /// # Errors
    /// As [`Self::cosine_within`].
    pub fn distance_within_plain(
        &self,
        a: &EncryptedArray,
        plain: &PlainRows<'_>,
        lengths: &Lengths,
    ) -> Result<EncryptedArray> {
        slotwise("distance", &a.packing)?;
        self.root(&self.squared_distance_plain(a, plain)?, lengths)
    }

    fn root(&self, squares: &EncryptedArray, lengths: &Lengths) -> Result<EncryptedArray> {
        let squares = self.alone(squares)?;
        self.multiply(&squares, &self.inverse_roots(&squares, lengths)?)
    }

    /// 1/|x| of each vector.
    fn inverse_lengths(&self, a: &EncryptedArray, lengths: &Lengths) -> Result<EncryptedArray> {
        slotwise("cosine", &a.packing)?;
        self.inverse_roots(&self.alone(&self.squared_norm(a)?)?, lengths)
    }

    fn inverse_roots(&self, scores: &EncryptedArray, lengths: &Lengths) -> Result<EncryptedArray> {
        let roots = self.each("an inverse root", scores, |_, _, cipher| {
            Ok(self.evaluator.inverse_square_root(cipher, &lengths.root)?)
        })?;
        let [low, high] = lengths.squares;
        let ciphertexts = scores.left.iter().map(|cipher| self.kept(cipher));
        let ciphertexts = ciphertexts.collect::<Result<_>>()?;
        Ok(roots.under(Condition { packing: scores.packing, ciphertexts, low, high }))
    }

    /// The same numbers at the lowest level that has room for all that they may be: to be looked at,
    /// in as few bytes as can be.
    fn kept(&self, cipher: &Ciphertext) -> Result<Ciphertext> {
        let cipher = self.evaluator.normalise(cipher)?;
        // A bit for the sign, and one for the error.
        let needed = (cipher.scale() * cipher.magnitude()).log2() + 2.0;
        let level = (0..cipher.level()).find(|&level| self.params.log_modulus(level) >= needed);
        Ok(self.evaluator.drop_to(&cipher, level.unwrap_or(cipher.level()))?)
    }

    /// The scores with zeros around them, for one level. Between the scores of several rows lie
    /// sums over parts of two rows, which a polynomial may throw beyond the modulus: that would
    /// spoil the scores too.
    fn alone(&self, scores: &EncryptedArray) -> Result<EncryptedArray> {
        let packing = &scores.packing;
        if packing.layout != ArrayLayout::Slots || packing.slots() == packing.stride {
            return Ok(scores.clone());
        }
        let one = PlainRows::new(&[1.0], 1, 1)?;
        self.each("a mask", scores, |side, index, cipher| {
            self.times(cipher, &one, packing, (side, index))
        })
    }
}
