//! The exponential and the half ring of a compact plan, and the places of numbers in them.

use super::plan::CompactPlan;
use crate::error::{Error, Result};
use ciphervec_he::ckks::{Exponential, HalfRing, ParamsSpec};
use std::sync::Arc;

/// What takes compact queries to roots of unity.
#[derive(Debug)]
pub struct Compact {
    exponential: Exponential,
    ring: Arc<HalfRing>,
    params: ParamsSpec,
    deviation: f64,
}

impl Compact {
    /// The set of a plan.
    ///
    /// # Errors
    /// [`Error::Range`] never, for sets that were tried.
    pub(in crate::lookup::tokens) fn new(plan: &CompactPlan) -> Result<Self> {
        let compact = Self::of(plan, Exponential::new(plan.spec)?)?;
        // What was planned with is a lower bound, for sets of all sizes.
        let found = compact.exponential.plan()?.precision_bits;
        if found < plan.root_bits {
            return Err(Error::Range {
                what: "the precision of roots of unity",
                expected: format!("at least {} bits", plan.root_bits),
                actual: format!("{found:.1}"),
            });
        }
        Ok(compact)
    }

    /// The same without a security table.
    ///
    /// # Errors
    /// As [`Self::new`].
    #[cfg(feature = "hazmat")]
    pub(in crate::lookup::tokens) fn insecure_new(plan: &CompactPlan) -> Result<Self> {
        Self::of(plan, Exponential::insecure_new(plan.spec)?)
    }

    fn of(plan: &CompactPlan, exponential: Exponential) -> Result<Self> {
        let ring = Arc::new(HalfRing::new(exponential.params(), plan.bits)?);
        Ok(Compact { exponential, ring, params: plan.params, deviation: plan.deviation })
    }

    /// What makes roots of numbers.
    pub fn exponential(&self) -> &Exponential {
        &self.exponential
    }

    /// What numbers are sent in.
    pub fn ring(&self) -> &Arc<HalfRing> {
        &self.ring
    }

    /// What estimates of the work on roots look at, and the standard deviation of a part of one.
    pub fn estimate(&self) -> (ParamsSpec, f64) {
        (self.params, self.deviation)
    }

    /// The half-ring ciphertext, of those of a batch, and the place in it of the number that becomes
    /// the root of `list` in `slot`, for `lists` lists: each two share a bootstrapping, and a last one
    /// may be alone.
    pub fn place(&self, lists: usize, list: usize, slot: usize) -> (usize, usize) {
        if list + 1 == lists && list.is_multiple_of(2) {
            return (list, self.ring.place(slot));
        }
        let (which, place) = self.ring.place_in_pair(slot);
        (list - list % 2 + which, place + list % 2 * (self.ring.messages() / 2))
    }
}
