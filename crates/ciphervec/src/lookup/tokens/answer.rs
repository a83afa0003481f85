//! Looked-up rows on the wire, in the fewest bytes that their stated bound allows, by a server.
//!
//! `description's id 16 | nonce 16 | memo, its length before it as u32 | batches u32 | ciphertexts`,
//! batch after batch, each with a column, or in the standard ring with two as real and imaginary
//! parts: `scale f64 of each column | bits u8 of each part | coefficients, part by part`.
//!
//! # How many bits
//!
//! An answer has d numbers a token, in ciphertexts (c_0, c_1), of as few bits as the requested
//! precision allows:
//!
//! 1. **One prime.** The server rescales to q_0, of which a column's largest number, times the
//!    scale Δ, takes 1/2.1.
//! 2. **Two columns a ciphertext** in the standard ring: Re + i Im.
//! 3. **High bits only.** A coefficient x of part j is sent as round(x 2^(B_j)/q_0) modulo 2^(B_j).
//!
//! With u_j = q_0/2^(B_j) each coefficient is off by a number r_j, uniform between −u_j/2 and
//! u_j/2, and a slot by (r_0 + r_1 s)/Δ. δ is 2N in the conjugate-invariant ring, N in the other,
//! and δ' the part of δ in one coordinate of a slot (δ or δ/2):
//!
//! ||standard deviation in a slot, times Δ|largest but for 2⁻⁶⁷, in standard deviations|
//! |---|---|---|
//! |r_0|u_0 √(δ'/12)|9.7|
//! |r_1 s|u_1 √(δ'/12 · 2δ/3)|50 in the conjugate-invariant ring, 36 in the other|
//! |r_2 s², where nothing is relinearised|u_2 √(δ'/12) · 2δ/3|9.8³|
//!
//! The second is a Gaussian number times a value of the secret, hence the longer tail (ckks.md
//! (docs/ckks.md)). What c_1 loses weighs √(2δ/3) · 5 times as much, so c_0 is sent with 9 to 10
//! bits fewer.
//!
//! **How many bits.** With b = `precision_bits` and σ the root mean square of what is looked up,
//! rounding may take R = 9.5 · 2^−b σ from a number: as much as a Gaussian error of 2^−b σ stays
//! within but for 2⁻⁶⁴. Each part may take half of R (a third). So
//!
//! ```text
//! B_0 ≈ log2(2.1 · μ √(δ'/3) · 9.7 / R),  B_1 ≈ B_0 + log2(5 √(2δ/3))
//! ```
//!
//! with μ the largest number of the column (of a pair, √2 times it).
//!
//! The client refuses an answer that rounds by more than R. `error_bound` is R plus the error of
//! the ciphertexts, 2⁻⁶⁵ each. Descriptions of release 0.1 have no R: answers to these are rounded
//! to 1/32 of their bound.

use super::bound::{CHANCE_BITS, ROOM, TAIL_DEVIATIONS};
use super::design::{Design, Shape};
use super::messages::head;
use super::recipe::Recipe;
use super::weights::{Weights, magnitudes};
use crate::error::Result;
use crate::lookup::serialize::header;
use crate::lookup::spec::Spec;
use ciphervec_arith::parallel::*;
use ciphervec_he::ckks::{Ciphertext, Evaluator, ParamsSpec, Ring, Truncation, deviations};
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::wire::{KeyId, Kind};

/// The version of an answer whose coefficients are rounded.
pub const ROUNDED_VERSION: u16 = 2;
/// Part of the modulus that roundings may take, beside numbers that have 1/[`ROOM`] of it.
const SLACK: f64 = 0.01;
/// Numbers of a column over the root mean square of all, where nothing is known of a table.
const TYPICAL_PEAK: f64 = 6.0;

impl Recipe {
    /// Columns of a ciphertext of an answer.
    #[doc(hidden)]
    pub fn columns_each(&self) -> usize {
        columns_each(self.params().ring())
    }

    /// Bytes of a batch's answer, for a table whose numbers are about of one size.
    pub fn answer_bytes(&self) -> usize {
        answer_bytes(self.params().spec(), &self.design())
    }

    /// What no number of rows looked up in `tables` is off by more before it is rounded, except with
    /// a chance below 2⁻⁶⁵. An error is a value of the key times a Gaussian number; it is that of
    /// [`Self::bound`] without its margin, or of the largest column where that is larger, and that of
    /// the weights as they are; and of two columns in one ciphertext each has the other's imaginary
    /// part.
    pub(in crate::lookup) fn number_bound(&self, tables: &[&[f64]], weights: &Weights) -> f64 {
        let Shape { rows, columns, .. } = *self.shape();
        let column = |column: usize| -> f64 {
            let values = tables.iter().flat_map(|table| table.iter().skip(column).step_by(columns));
            values.map(|value| value * value).sum::<f64>() / rows as f64
        };
        let largest = (0..columns).map(column).fold(0.0, f64::max).sqrt();
        let coarsest = weights.scales.iter().copied().fold(f64::INFINITY, f64::min);
        let (off, rounded) = self.with_errors(|errors, candidate| {
            let [real, imaginary] = errors.parts(candidate);
            let off = if self.columns_each() == 2 { real.hypot(imaginary) } else { real };
            (off, errors.rounded_weights() * (tables.len() as f64).sqrt() / coarsest)
        });
        let tail = deviations(CHANCE_BITS, 1.0, self.params().ring(), 1.0);
        tail * (off * largest.max(self.spectral(tables))).hypot(rounded)
    }

    /// What no number of an answer from `tables` is off by more because it was rounded, except with
    /// a chance below 2⁻⁶⁵: what the precision allows, or what all bits leave.
    ///
    /// # Errors
    /// None for recipes of lookups.
    pub(in crate::lookup) fn answer_rounding(&self, tables: &[&[f64]]) -> Result<f64> {
        let Shape { rows, columns, .. } = *self.shape();
        let square: f64 = tables.iter().copied().flatten().map(|value| value * value).sum();
        let peak = magnitudes(tables, columns).into_iter().fold(0.0, f64::max);
        let room = ROOM * peak * (self.columns_each() as f64).sqrt();
        // A factor that fills the modulus is an integer.
        let scale = f64::exp2(self.params().log_modulus(0)) / (2.0 * room);
        let finest = Truncation::finest(self.params(), self.design().degree())?.error(scale);
        Ok(allowed(self.shape(), (square / (rows * columns) as f64).sqrt()).max(finest))
    }
}

/// What rounding may take from a number where numbers have this root mean square: b bits below it,
/// for as many standard deviations as a Gaussian error stays within.
fn allowed(shape: &Shape, root_mean_square: f64) -> f64 {
    TAIL_DEVIATIONS * f64::exp2(-f64::from(shape.precision_bits)) * root_mean_square
}

/// Bytes of a batch's answer under such parameters.
pub(super) fn answer_bytes(params: &ParamsSpec, design: &Design<'_>) -> usize {
    let each = columns_each(params.ring);
    let peak = TYPICAL_PEAK * (each as f64).sqrt();
    // A factor that fills the modulus is an integer.
    let scale = f64::exp2(f64::from(params.base_bits) - 0.5) / (ROOM * peak);
    let all = params.base_bits as usize * (design.degree() + 1) * ((1 << params.log_degree) / 8);
    let slack = SLACK * f64::exp2(f64::from(params.base_bits)) / scale;
    let error = allowed(&design.shape, 1.0).min(slack);
    let one = Truncation::planned(params, design.degree(), scale, error)
        .map_or(all, |truncation| truncation.bytes());
    design.shape.columns.div_ceil(each) * one
}

/// Columns of a ciphertext of an answer: real numbers leave imaginary parts to others.
fn columns_each(ring: Ring) -> usize {
    if ring == Ring::Standard { 2 } else { 1 }
}

/// Looked-up rows, `batches` of a ciphertext a column, as they travel.
///
/// # Errors
/// [`ciphervec_he::Error::Range`] where the description is of an earlier release and promises more
/// than the modulus holds.
pub(in crate::lookup) fn write_answer(
    spec: &Spec,
    (recipe, weights): (&Recipe, &Weights),
    (key, nonce, memo): (KeyId, SegmentId, &[u8]),
    batches: &[Vec<Ciphertext>],
) -> Result<Vec<u8>> {
    let mut out = head(spec, nonce, memo, batches.len());
    let each = recipe.columns_each();
    for batch in batches {
        let groups: Vec<&[Ciphertext]> = batch.chunks(each).collect();
        let written = groups
            .par_iter()
            .enumerate()
            .map(|(at, group)| write(recipe, (weights.peak(at * each), spec.rounding()), group));
        written.collect::<Result<Vec<_>>>()?.iter().for_each(|one| out.extend_from_slice(one));
    }
    header(Kind::Response, spec.params, key).seal_version(ROUNDED_VERSION, &mut out);
    Ok(out)
}

/// One column or two, whose numbers together are at most `peak`.
fn write(recipe: &Recipe, (peak, rounding): (f64, f64), group: &[Ciphertext]) -> Result<Vec<u8>> {
    let params = recipe.params();
    let evaluator = Evaluator::without_keys(params.clone());
    let lowered = group.iter().map(|one| Ok(evaluator.lower(one, peak, ROOM)?));
    let mut lowered: Vec<Ciphertext> = lowered.collect::<Result<_>>()?;
    let scales: Vec<f64> = lowered.iter().map(Ciphertext::scale).collect();
    let joined = match lowered.as_slice() {
        [re, im] => evaluator.join_parts(re, im)?,
        _ => lowered.swap_remove(0),
    };
    let (least, most) = smallest_and_largest(&scales);
    let slack = SLACK * f64::exp2(params.log_modulus(0)) / most;
    let truncation = Truncation::within(params, joined.degree(), least, rounding.min(slack))?;
    let mut out = Vec::with_capacity(8 * group.len() + 3 + truncation.bytes());
    scales.iter().for_each(|scale| out.extend_from_slice(&scale.to_le_bytes()));
    out.extend(truncation.bits().iter().map(|bits| *bits as u8));
    joined.truncate(&truncation, &mut out)?;
    Ok(out)
}

pub fn smallest_and_largest(scales: &[f64]) -> (f64, f64) {
    let fold = |first, of: fn(f64, f64) -> f64| scales.iter().copied().fold(first, of);
    (fold(f64::INFINITY, f64::min), fold(0.0, f64::max))
}
