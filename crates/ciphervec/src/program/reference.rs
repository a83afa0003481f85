//! Reference: a ring degree enters, what plans are chosen by leaves: times that are the same on every
//! machine, so that the plan of a circuit is, too. Key holder, without a key.

use super::numbers::range;
use crate::error::Result;
use ciphervec_he::ckks::Calibration;

/// The first degree, as its log2.
const FIRST: u32 = 12;
/// Microseconds of a transform and of a product, from 2^12 on. Only their ratios matter: they are those of
/// a busy AMD EPYC on AVX2, smoothed and taken down to what a quiet one would take.
const MICROSECONDS: [(f64, f64); 6] =
    [(5.6, 1.7), (12.3, 3.7), (25.7, 6.7), (55.0, 13.6), (120.0, 31.4), (275.0, 80.0)];

/// What work is reckoned by when plans are compared.
pub(super) fn reference(log_degree: u32) -> Result<Calibration> {
    let last = FIRST + MICROSECONDS.len() as u32 - 1;
    let found = log_degree.checked_sub(FIRST).and_then(|place| MICROSECONDS.get(place as usize));
    let &(transform, product) = found.ok_or_else(|| {
        range("log2 of the ring degree", format!("{FIRST} to {last}"), log_degree)
    })?;
    Ok(Calibration { log_degree, transform_ms: transform / 1e3, product_ms: product / 1e3 })
}
