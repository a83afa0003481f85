//! The constants of a circuit as plaintexts, encoded once for all runs. Server side.
//!
//! Weights and masks are public and the same in every run, and encoding one takes as long as multiplying
//! by it several times. What a plan keeps is bounded, and depends on nothing secret.

use super::machine::Constant;
use crate::error::Result;
use ciphervec_he::ckks::{Encoding, Params, ParamsSpec, Plaintext};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of plaintexts that a plan keeps.
const MOST_BYTES: u64 = 32 << 20;

#[derive(Debug, Default)]
struct Kept {
    /// By constant, level and bits of the scale.
    plaintexts: HashMap<(u32, usize, u64), Arc<Plaintext>>,
    bytes: u64,
}

/// Plaintexts of a plan's constants, kept from their first use on.
#[derive(Debug, Default)]
pub(super) struct Encoded(Mutex<Kept>);

impl Encoded {
    /// A constant, encoded for an operand of that level and those slots.
    ///
    /// # Errors
    /// As [`Plaintext::encode_with`].
    pub fn get(
        &self,
        params: &Arc<Params>,
        constant: Constant<'_>,
        (level, scale, slots): (usize, f64, usize),
    ) -> Result<Arc<Plaintext>> {
        let place = (constant.index(), level, scale.to_bits());
        let held = |kept: &Kept| kept.plaintexts.get(&place).cloned();
        if let Some(plaintext) = held(&self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(plaintext);
        }
        let encoding = Encoding {
            level: Some(level),
            scale: Some(scale),
            slots: Some(slots),
            magnitude: None,
        };
        let made = Arc::new(Plaintext::encode_with(params, &constant.values(), &encoding)?);
        let bytes = Params::poly_memory(params.spec(), level + 1);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + bytes <= MOST_BYTES && kept.plaintexts.insert(place, made.clone()).is_none()
        {
            kept.bytes += bytes;
        }
        Ok(made)
    }

    /// The most bytes that are kept for so many steps.
    pub fn most(spec: &ParamsSpec, steps: usize) -> u64 {
        MOST_BYTES.min(Params::poly_memory(spec, spec.levels + 1).saturating_mul(steps as u64))
    }
}
