//! Adds Gaussian noise to the cosines of one answer, to be ranked and shown to others. Owner only.
//!
//! A score of the ring form carries noise that cannot be taken off: that of the row, fixed when it was sealed, and that of
//! the query's tree times a whole block. Whatever is computed from the flooded score alone says no more about either than
//! a hint with this noise does; how many such hints there may be is the caller's to count, before anything is opened
//! (`docs/sealed.md`, section 4.3).

use super::directory::SegmentDirectory;
use super::form::Hints;
use super::opened_sidecar::Origin;
use super::owner::Owner;
use crate::error::{Error, Result};
use ciphervec_he_secret::gaussian;
use ciphervec_he_secret::keys::random_bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroizing;

/// Noise for one answer, from a seed of the operating system's. Every row of every query has its own.
pub struct Flood {
    deviation: f64,
    next: AtomicU64,
    seed: Zeroizing<[u8; 32]>,
}

impl Flood {
    /// Noise of this standard deviation, as cosines.
    ///
    /// # Errors
    /// Another number than 2⁻¹² to 2⁻⁴; no randomness.
    pub fn new(deviation: f64) -> Result<Self> {
        if !(f64::exp2(-12.0)..=f64::exp2(-4.0)).contains(&deviation) {
            return Err(Error::Range {
                what: "the standard deviation of a flood, as a cosine",
                expected: "2^-12 to 2^-4".to_owned(),
                actual: deviation.to_string(),
            });
        }
        Ok(Flood { deviation, next: AtomicU64::new(0), seed: Zeroizing::new(random_bytes()?) })
    }

    /// Adds noise to the cosines of one query with some rows, as has been added to no others.
    pub(super) fn add(&self, cosines: &[f64]) -> Zeroizing<Vec<f64>> {
        let stream = self.next.fetch_add(1, Ordering::Relaxed);
        let noise = gaussian::pairs(&self.seed, stream, cosines.len().div_ceil(2));
        let flooded = cosines.iter().zip(noise.iter().flatten());
        Zeroizing::new(flooded.map(|(cosine, noise)| cosine + self.deviation * noise).collect())
    }
}

impl Owner {
    /// Refuses a flood where it hides nothing: over rows whose plaintext somebody else chose, and in forms without hints.
    pub(super) fn expect_flooded(&self, directory: &SegmentDirectory) -> Result<()> {
        self.hints(directory)?;
        let written = directory.segments().map(|(id, _, _)| (id, directory.origin(id)));
        for (id, origin) in written {
            if let Some(Origin::Writer(name)) = origin {
                let detail = format!(
                    "a flood covers the owner's own rows, and these are of writer {name:?}: adopt them first"
                );
                return Err(Error::Directory { segment: id.to_string(), detail });
            }
        }
        Ok(())
    }

    /// What one score says about noise that outlives it, at the worst of the levels that the segments have.
    ///
    /// # Errors
    /// Another mode than `sealed`, or a scheme without it.
    pub fn hints(&self, directory: &SegmentDirectory) -> Result<Hints> {
        let top_level = directory.top_level();
        let mut worst = Hints { row: 0.0, key: 0.0 };
        let levels = directory.segments().map(|(_, _, level)| level);
        for level in levels.chain([top_level]) {
            let Some(hints) = self.form().hints(level, top_level)? else {
                let known = "sealed, whose rows and queries are both encrypted";
                return Err(Error::choice(
                    "the mode of a flood",
                    known,
                    self.spec().mode().as_str(),
                ));
            };
            worst = Hints { row: worst.row.max(hints.row), key: worst.key.max(hints.key) };
        }
        Ok(worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_as_wide_as_said_and_fresh_for_every_row_query_and_answer() {
        let deviation = f64::exp2(-8.0);
        let zeros = vec![0.0; 40_001];
        let floods = [Flood::new(deviation).unwrap(), Flood::new(deviation).unwrap()];
        let drawn = [
            floods[0].add(&zeros),
            floods[0].add(&zeros),
            floods[0].add(&zeros),
            floods[1].add(&zeros),
        ];
        let n = zeros.len() as f64;
        for (index, one) in drawn.iter().enumerate() {
            let product = |other: &[f64]| {
                let sum: f64 = one.iter().zip(other).map(|(a, b)| a * b).sum();
                sum / (n * deviation * deviation)
            };
            assert!((product(one) - 1.0).abs() < 7.0 * (2.0 / n).sqrt());
            for other in &drawn[index + 1..] {
                assert!(product(other).abs() < 7.0 / n.sqrt());
            }
            // Pairs are independent too.
            let next: f64 = one.windows(2).map(|pair| pair[0] * pair[1]).sum();
            assert!((next / (n * deviation * deviation)).abs() < 7.0 / n.sqrt());
        }
    }

    #[test]
    fn a_flood_is_neither_a_trickle_nor_a_deluge() {
        for wrong in [0.0, 1e-4, 0.1, f64::NAN, -0.01] {
            assert!(Flood::new(wrong).is_err(), "{wrong}");
        }
    }
}
