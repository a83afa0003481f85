//! Opens encrypted scores: checked cosines and matches. Key owner only.

use super::vectors::expect_key;
use super::{EncryptedScores, Layout, VectorSpec, slots};
use crate::error::{Error, Result};
use ciphervec_he_secret::additive::{Decrypt, Evaluate, Table};

/// Scores in the clear, for the key owner: someone who may ask for 50 to 200 of them recovers a
/// template. Others get [`Scores::matches`].
pub struct Scores {
    spec: VectorSpec,
    probes: usize,
    cosines: Vec<f64>,
}

/// What the key owner does with encrypted scores.
pub trait OwnerScores<T: Table> {
    /// Decrypts and rounds.
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::WrongKey`]; [`ciphervec_he_secret::Error::Bound`], without any value, when a
    /// result is larger than vectors and probes of this description allow.
    fn open<D>(&self, keys: &D) -> Result<Scores>
    where
        D: Decrypt,
        D::Public: Evaluate<Table = T>;
}

impl<T: Table> OwnerScores<T> for EncryptedScores<T> {
    fn open<D>(&self, keys: &D) -> Result<Scores>
    where
        D: Decrypt,
        D::Public: Evaluate<Table = T>,
    {
        let step = self.spec().grid().step();
        // A vector against itself may come out above one by what rounding added.
        let shown = |cosine| round(cosine, step).clamp(-1.0, 1.0);
        let cosines = cosines(self, &integers(self, keys)?).into_iter().map(shown).collect();
        Ok(Scores { spec: *self.spec(), probes: self.probes(), cosines })
    }
}

/// What [`integers`] gave as cosines, not rounded, for ranking.
pub(crate) fn cosines<T: Table>(scores: &EncryptedScores<T>, integers: &[i128]) -> Vec<f64> {
    let divisor =
        |result: usize| scores.spec().grid().divisor(scores.scales()[result / scores.vectors()]);
    integers.iter().enumerate().map(|(result, &score)| score as f64 / divisor(result)).collect()
}

/// Whether what [`integers`] gives may be one off.
pub(crate) fn may_have_moved<T: Table>(scores: &EncryptedScores<T>) -> bool {
    scores.packing().may_have_moved() && !scores.spec().grid().signs()
}

/// Decrypts: Σ x_i q_i, probe after probe, each checked against its bound.
///
/// # Errors
/// Those of [`OwnerScores::open`].
pub(crate) fn integers<T, D>(scores: &EncryptedScores<T>, keys: &D) -> Result<Vec<i128>>
where
    T: Table,
    D: Decrypt,
    D::Public: Evaluate<Table = T>,
{
    expect_key("encrypted scores", keys.public().key_id(), scores.key_id())?;
    let grid = scores.spec().grid();
    let packing = scores.packing();
    let messages = keys.decrypt(scores.table(), packing.result_bits())?;
    let one = u128::from(packing.may_have_moved());
    let bound = scores.spec().score_bound() + one;
    let bits = packing.slot_bits();
    let mut found = Vec::with_capacity(scores.probes() * scores.vectors());
    let mut exceeded = false;
    for index in 0..messages.len() {
        let fill = usize::from(scores.fill()[index % scores.fill().len()]);
        let words = messages.row(index);
        match packing.layout() {
            Layout::Horizontal => found.push(slots::read(words, packing.middle(), bits)),
            Layout::Elements | Layout::Lanes => {
                // Nothing lies beyond the last vector.
                exceeded |= !messages.fits(index, bits * fill as u32);
                let values = (0..fill).map(|slot| slots::read(words, slot * bits as usize, bits));
                found.extend(values);
            }
        }
    }
    exceeded |= found.iter().any(|score| score.unsigned_abs() > bound);
    if exceeded {
        return Err(ciphervec_he_secret::Error::Bound.into());
    }
    if grid.signs() {
        found.iter_mut().for_each(|score| *score = whole(*score, grid.dimension()));
    }
    Ok(found)
}

impl Scores {
    /// How many probes.
    pub fn probes(&self) -> usize {
        self.probes
    }

    /// How many vectors each was compared with.
    pub fn vectors(&self) -> usize {
        self.cosines.len() / self.probes
    }

    /// Cosines, probe after probe, rounded to the precision's step: 2⁻¹⁴ small, 2⁻¹⁸ standard, 2⁻⁴⁴
    /// high.
    pub fn cosines(&self) -> &[f64] {
        &self.cosines
    }

    /// The metric's values, probe after probe. `norms` are those of the vectors and `probe_norms`
    /// those of the probes; `cosine` and `hamming` do not look at them.
    ///
    /// # Errors
    /// [`Error::Range`] unless there is a norm a vector and one a probe, where the metric needs
    /// them.
    pub fn values(&self, norms: &[f64], probe_norms: &[f64]) -> Result<Vec<f64>> {
        let metric = self.spec.metric();
        if metric.needs_norms() {
            expect_count("the number of norms of vectors", self.vectors(), norms.len())?;
            expect_count("the number of norms of probes", self.probes, probe_norms.len())?;
        }
        // Sign vectors all have the norm √d; where norms play no part any will do.
        let root = (self.spec.dimension() as f64).sqrt();
        let norm = |norms: &[f64], index: usize| match metric.needs_norms() {
            true => norms[index],
            false => root,
        };
        let values = self.cosines.iter().enumerate().map(|(index, &cosine)| {
            let (row, probe) = (index % self.vectors(), index / self.vectors());
            metric.value(cosine, norm(norms, row), norm(probe_norms, probe))
        });
        Ok(values.collect())
    }

    /// Match or no match, probe after probe: whether the value that [`Self::values`] reports is at
    /// least `threshold` (cosine, inner product) or at most (l2, hamming). This is what third
    /// parties get.
    ///
    /// # Errors
    /// [`Error::Range`] for a threshold that is not a number, and those of [`Self::values`].
    pub fn matches(&self, threshold: f64, norms: &[f64], probe_norms: &[f64]) -> Result<Vec<bool>> {
        if threshold.is_nan() {
            return Err(Error::Range {
                what: "a threshold",
                expected: "a number".into(),
                actual: "NaN".into(),
            });
        }
        let higher = self.spec.metric().higher_is_closer();
        let values = self.values(norms, probe_norms)?;
        let close = |value| if higher { value >= threshold } else { value <= threshold };
        Ok(values.into_iter().map(close).collect())
    }
}

impl core::fmt::Debug for Scores {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Scores({} probes, {} vectors, redacted)", self.probes, self.vectors())
    }
}

/// The score of ±1 vectors next to what a mask may have moved by one: twice a number that is odd or
/// even as d is.
fn whole(score: i128, dimension: usize) -> i128 {
    let largest = 2 * dimension as i128;
    largest + 4 * (score - largest + 2).div_euclid(4)
}

fn round(cosine: f64, step: Option<f64>) -> f64 {
    step.map_or(cosine, |step| (cosine / step).round() * step)
}

fn expect_count(what: &'static str, expected: usize, actual: usize) -> Result<()> {
    if expected == actual {
        return Ok(());
    }
    Err(Error::Range { what, expected: expected.to_string(), actual: actual.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_products_of_signs_survive_one_unit() {
        for dimension in [1, 2, 7, 512] {
            for differing in 0..=dimension {
                let score = 2 * (dimension as i128 - 2 * differing as i128);
                for moved in -1..=1 {
                    assert_eq!(whole(score + moved, dimension), score);
                }
            }
        }
    }
}
