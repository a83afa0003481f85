//! Matrices: the vectors of one row, a token each, as its key holder keeps them: 8 bits a number and a scale a token. A number that is
//! kept is within half its token's scale of the one that was given, and [`max_sim`] says how far that takes a score. What is kept is kept
//! unchanged where it is put in again.

use crate::error::{Error, Result};

/// Tokens of a row or a query at most.
pub const MAX_TOKENS: usize = 8_192;
/// Magnitude of a number at most: sums and squares of sums stay within float32.
const LARGEST: f32 = 1e9;
/// The first byte of one that is stored; a single vector begins with another.
const MATRIX: u8 = 2;
/// The largest code.
const TOP: f32 = 127.0;
/// Sums that a product of two vectors is made of, so that processors compute them side by side.
const LANES: usize = 8;

/// Vectors of one row or query, as a caller has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tokens {
    /// Numbers of each vector.
    pub width: usize,
    /// The vectors, end to end.
    pub values: Vec<f32>,
}

impl Tokens {
    /// What is wrong with them, for a collection whose vectors have this many numbers.
    pub(crate) fn fault(&self, width: usize) -> Option<String> {
        let Tokens { width: given, values } = self;
        if *given != width || !values.len().is_multiple_of(width) {
            return Some(format!(
                "has vectors of {given} numbers; the collection was made for {width}"
            ));
        }
        let tokens = values.len() / width;
        if !(1..=MAX_TOKENS).contains(&tokens) {
            return Some(format!("has {tokens} vectors; a matrix has 1 to {MAX_TOKENS}"));
        }
        let at = values.iter().position(|value| !(-LARGEST..=LARGEST).contains(value))?;
        Some(format!(
            "has the number {} in vector {}; numbers are finite and at most {LARGEST:e} in magnitude",
            values[at],
            at / width
        ))
    }
}

/// The same as they are kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Matrix {
    width: usize,
    /// Of each token.
    scales: Vec<f32>,
    /// −127 to 127, token after token.
    codes: Vec<i8>,
}

impl Matrix {
    /// Of tokens without a fault.
    pub fn of(tokens: &Tokens) -> Self {
        let count = tokens.values.len() / tokens.width.max(1);
        let mut scales = Vec::with_capacity(count);
        let mut codes = Vec::with_capacity(tokens.values.len());
        for token in tokens.values.chunks_exact(tokens.width.max(1)) {
            let largest = token.iter().fold(0f32, |most, value| most.max(value.abs()));
            // Below that a scale would lose digits, and the bound with them.
            let scale = short(largest / TOP).max(f32::MIN_POSITIVE);
            scales.push(scale);
            codes.extend(token.iter().map(|value| {
                let code = (f64::from(*value) / f64::from(scale)).round();
                code.clamp(f64::from(-TOP), f64::from(TOP)) as i8
            }));
        }
        Matrix { width: tokens.width, scales, codes }
    }

    /// How many tokens it has.
    pub fn tokens(&self) -> usize {
        self.scales.len()
    }

    /// The scale and the codes of each token.
    pub fn each(&self) -> impl Iterator<Item = (f32, &[i8])> {
        self.scales.iter().copied().zip(self.codes.chunks_exact(self.width))
    }

    /// The numbers that are kept.
    pub fn values(&self) -> Tokens {
        let number = |scale: f32| move |code: &i8| (f64::from(scale) * f64::from(*code)) as f32;
        let values = self.each().flat_map(|(scale, codes)| codes.iter().map(number(scale)));
        Tokens { width: self.width, values: values.collect() }
    }

    /// The bytes that are sealed: the kind, how many tokens, their scales, their codes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(5 + 4 * self.scales.len() + self.codes.len());
        bytes.push(MATRIX);
        bytes.extend((self.tokens() as u32).to_le_bytes());
        bytes.extend(self.scales.iter().flat_map(|scale| scale.to_le_bytes()));
        bytes.extend(self.codes.iter().map(|code| *code as u8));
        bytes
    }

    /// Reads it back; none where no bytes are.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for bytes that no tokens of this width are written as.
    pub fn read(data: &[u8], width: usize) -> Result<Option<Self>> {
        if data.is_empty() {
            return Ok(None);
        }
        Self::parsed(data, width).map(Some).ok_or_else(|| {
            Error::Corrupt(format!(
                "{} bytes are no matrix of vectors of {width} numbers: that has its kind, how many, their scales and codes.",
                data.len()
            ))
        })
    }

    fn parsed(data: &[u8], width: usize) -> Option<Self> {
        let (&kind, rest) = data.split_first()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let tokens = u32::from_le_bytes(*count) as usize;
        if kind != MATRIX || !(1..=MAX_TOKENS).contains(&tokens) {
            return None;
        }
        let (scales, codes) = rest.split_at_checked(4 * tokens)?;
        let scales: Vec<f32> =
            scales.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
        let codes: Vec<i8> = codes.iter().map(|byte| *byte as i8).collect();
        let largest = LARGEST / TOP;
        let fits = codes.len() == tokens.checked_mul(width)?
            && scales.iter().all(|scale| (f32::MIN_POSITIVE..=largest).contains(scale))
            && !codes.contains(&i8::MIN);
        fits.then_some(Matrix { width, scales, codes })
    }
}

/// The first 17 significant bits of it: its product with a code, which has 7, is a float32, from which the same scale and code come again.
/// The largest number of a token is off by 127 × 2⁻¹⁶ scales then, far less than half a one.
fn short(scale: f32) -> f32 {
    const DROPPED: u32 = f32::MANTISSA_DIGITS - 17;
    f32::from_bits(scale.to_bits() >> DROPPED << DROPPED)
}

/// The sum over the query's tokens of their largest inner product with one of the document's; and how far at most it is from that with
/// the document's tokens as they were given.
///
/// Of a query token q, a document token of scale s and codes c: each number is off by s/2 at most, which takes q·x off by s/2·‖q‖₁. A sum
/// of n products in float32, in lanes, is off by γ·Σ|q||c| with γ = (n/8 + 4)·2⁻²⁴ at most (Higham 2002, section 3.1), and so by
/// γ·127·s·‖q‖₁. The larger of two maxima differ by no more than their terms.
pub(crate) fn max_sim(query: &Tokens, document: &Matrix) -> (f64, f64) {
    let width = document.width;
    let codes: Vec<f32> = document.codes.iter().map(|code| f32::from(*code)).collect();
    let widest = document.scales.iter().fold(0f32, |most, scale| most.max(*scale));
    let rounding = (width.div_ceil(LANES) + 4) as f64 / f64::from(1 << 24);
    let each = f64::from(widest) * (0.5 + f64::from(TOP) * rounding);
    let (mut score, mut bound) = (0f64, 0f64);
    for token in query.values.chunks_exact(width) {
        let products = document.scales.iter().zip(codes.chunks_exact(width));
        let products =
            products.map(|(scale, codes)| f64::from(*scale) * f64::from(dot(token, codes)));
        score += products.fold(f64::NEG_INFINITY, f64::max);
        bound += each * token.iter().map(|value| f64::from(value.abs())).sum::<f64>();
    }
    // What sums in float64 are off by is far below.
    (score, bound * (1.0 + 1e-6))
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, left), (b, right)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    for ((sum, a), b) in sums.iter_mut().zip(left).zip(right) {
        *sum += a * b;
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(width: usize, most: usize) -> impl Strategy<Value = Tokens> {
        (1..=most)
            .prop_flat_map(move |count| proptest::collection::vec(-2f32..2.0, width * count))
            .prop_map(move |values| Tokens { width, values })
    }

    proptest! {
        #[test]
        fn numbers_are_kept_to_half_a_scale(given in tokens(5, 4), power in -120..20) {
            let values = given.values.iter().map(|x| x * 2f32.powi(power)).collect();
            let given = Tokens { width: 5, values };
            let kept = Matrix::of(&given);
            for ((scale, codes), token) in kept.each().zip(given.values.chunks_exact(5)) {
                for (code, value) in codes.iter().zip(token) {
                    let off = f64::from(*value) - f64::from(scale) * f64::from(*code);
                    prop_assert!(off.abs() <= f64::from(scale) / 2.0 * (1.0 + 1e-6), "{value} {code} {scale}");
                }
            }
            let read = Matrix::read(&kept.to_bytes(), 5).unwrap();
            prop_assert_eq!(read.as_ref(), Some(&kept));
            prop_assert_eq!(Matrix::of(&kept.values()), kept);
        }

        #[test]
        fn scores_are_within_their_bound(query in tokens(19, 4), document in tokens(19, 5)) {
            let (score, bound) = max_sim(&query, &Matrix::of(&document));
            let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            let plain: f64 = query.values.chunks_exact(19).map(|token| {
                document.values.chunks_exact(19).map(|other| product(token, other)).fold(f64::NEG_INFINITY, f64::max)
            }).sum();
            prop_assert!((score - plain).abs() <= bound, "{score} {plain} {bound}");
            prop_assert!(bound <= 0.02 * query.values.iter().map(|x| f64::from(x.abs())).sum::<f64>());
        }

        #[test]
        fn one_flipped_bit_is_refused_or_means_something_else(
            given in tokens(3, 3), at in any::<proptest::sample::Index>(), bit in 0..8,
        ) {
            let kept = Matrix::of(&given);
            let mut bytes = kept.to_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= 1u8 << bit;
            if let Ok(found) = Matrix::read(&bytes, 3) {
                prop_assert_ne!(found, Some(kept));
            }
        }
    }

    #[test]
    fn a_known_score() {
        // Codes are exact here: 127 and 0 by the scale 1/127, of which the product is 1 after rounding to float32.
        let document = Matrix::of(&Tokens { width: 2, values: vec![127.0, 0.0, 0.0, 127.0] });
        let query = Tokens { width: 2, values: vec![1.0, 2.0, -3.0, -4.0] };
        let (score, bound) = max_sim(&query, &document);
        assert_eq!(score, 2.0 * 127.0 - 3.0 * 127.0);
        assert!((5.0..5.001).contains(&bound), "{bound}: half of 3 + 7, scale 1");
    }

    #[test]
    fn other_tokens_are_refused() {
        let fault = |width, values: &[f32]| Tokens { width, values: values.to_vec() }.fault(2);
        assert_eq!(fault(2, &[1.0, 2.0]), None);
        for (width, values, says) in [
            (3, &[1.0; 3][..], "vectors of 3 numbers"),
            (2, &[], "has 0 vectors"),
            (2, &[0.5; 2 * 10_000], "has 10000 vectors; a matrix has 1 to 8192"),
            (2, &[1.0, f32::NAN], "the number NaN in vector 0"),
            (2, &[1.0, 1.0, f32::INFINITY, 1.0], "the number inf in vector 1"),
        ] {
            assert!(fault(width, values).unwrap().contains(says), "{says}");
        }
    }
}
