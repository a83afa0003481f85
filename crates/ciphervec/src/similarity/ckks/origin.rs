//! What a flood over an array may rest on: who worked out its figures, and which encrypted numbers
//! had to lie in an interval for them to hold. Both sides.
//!
//! Errors and magnitudes travel with ciphertexts. Those of an array that was read are the word of
//! whoever wrote it, and so are those of everything computed from it. An inverse root is bounded on
//! the interval that was stated for it and nowhere else, so its argument goes along with the result:
//! only the owner can look where it lies.

use super::array::EncryptedArray;
use super::layout::ArrayPacking;
#[cfg(feature = "client")]
use crate::error::{Error, Result};
use ciphervec_he::ckks::Ciphertext;
use std::sync::Arc;

/// The most intervals that an array is read with.
pub(super) const MAX_CONDITIONS: usize = 1024;

/// Encrypted numbers, one a row, and where they have to lie.
pub(super) struct Condition {
    pub packing: ArrayPacking,
    pub ciphertexts: Vec<Ciphertext>,
    pub low: f64,
    pub high: f64,
}

impl Condition {
    /// The interval, for errors.
    #[cfg(feature = "client")]
    pub fn interval(&self) -> String {
        format!("[{}, {}], the squares of the interval that was stated", self.low, self.high)
    }
}

/// Where an array comes from.
#[derive(Clone, Default)]
pub(super) struct Origin {
    /// Whether its figures rest on bytes that were read.
    pub claimed: bool,
    pub conditions: Vec<Arc<Condition>>,
}

impl Origin {
    /// Of what is computed from `arrays`.
    pub fn of(arrays: &[&EncryptedArray]) -> Self {
        let mut origin = Origin::default();
        for array in arrays {
            origin.claimed |= array.origin.claimed;
            for condition in &array.origin.conditions {
                if !origin.conditions.iter().any(|one| Arc::ptr_eq(one, condition)) {
                    origin.conditions.push(condition.clone());
                }
            }
        }
        origin
    }
}

impl EncryptedArray {
    /// The same array, whose figures hold under one more condition.
    pub(super) fn under(mut self, condition: Condition) -> Self {
        self.origin.conditions.push(Arc::new(condition));
        self
    }

    /// Refuses to take this for what a computation gives of which `self` is an instance.
    #[cfg(feature = "client")]
    pub(super) fn check_alike(&self, other: &EncryptedArray) -> Result<()> {
        let shape = |array: &EncryptedArray| {
            let one = |packing: &ArrayPacking, ciphertexts: usize| {
                let (rows, dimension) = (packing.rows, packing.dimension);
                let layout = packing.layout.as_str();
                format!("{rows} × {dimension} ({layout}) in {ciphertexts} ciphertexts")
            };
            let conditions = array.origin.conditions.iter().map(|condition| {
                let Condition { packing, ciphertexts, low, high } = &**condition;
                format!("; {} in [{low}, {high}]", one(packing, ciphertexts.len()))
            });
            one(&array.packing, array.left.len()) + &conditions.collect::<String>()
        };
        let same = self.packing == other.packing
            && self.post_processing == other.post_processing
            && shape(self) == shape(other);
        if same {
            return Ok(());
        }
        Err(Error::CkksSimilarity {
            operation: "publish",
            detail: format!(
                "the array is not what the expected computation gives: {} expected, got {}",
                shape(self),
                shape(other)
            ),
        })
    }
}
