//! What a flood over an array may rest on: who worked out its figures, and which encrypted numbers
//! had to lie in an interval for them to hold. Both sides.
//!
//! Errors and magnitudes travel with ciphertexts. Those of an array that was read are the word of
//! whoever wrote it, and so are those of everything computed from it. An inverse root is bounded on
//! the interval that was stated for it and nowhere else, so its argument goes along with the result:
//! only the owner can look where it lies.

use super::layout::ArrayPacking;
use ciphervec_he::ckks::Ciphertext;
use std::sync::Arc;

/// The most intervals that an array is read with.
pub(super) const MAX_CONDITIONS: usize = 1024;

/// Encrypted numbers, one a row, and where they have to lie.
pub struct Condition {
    pub packing: ArrayPacking,
    pub ciphertexts: Vec<Ciphertext>,
    pub low: f64,
    pub high: f64,
}

impl Condition {
    /// The interval, for errors.
    pub fn interval(&self) -> String {
        format!("[{}, {}], the squares of the interval that was stated", self.low, self.high)
    }
}

/// Where an array comes from.
#[derive(Clone, Default)]
pub struct Origin {
    /// Whether its figures rest on bytes that were read.
    pub claimed: bool,
    pub conditions: Vec<Arc<Condition>>,
}

impl Origin {
    /// Of what is computed from what has these.
    pub fn of<'a>(sources: impl Iterator<Item = &'a Origin>) -> Self {
        let mut origin = Origin::default();
        for source in sources {
            origin.claimed |= source.claimed;
            for condition in &source.conditions {
                if !origin.conditions.iter().any(|one| Arc::ptr_eq(one, condition)) {
                    origin.conditions.push(condition.clone());
                }
            }
        }
        origin
    }
}
