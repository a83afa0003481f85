//! Times that plans are chosen by, the same on every machine, so that one circuit has one plan.

use ciphervec_he::ckks::Calibration;

/// The first degree, as its log2.
const FIRST: u32 = 12;
/// Microseconds of a transform and of a product, from 2^12 on. Only their ratios matter: they are those of
/// a busy AMD EPYC on AVX2, smoothed and taken down to what a quiet one would take.
const MICROSECONDS: [(f64, f64); 6] =
    [(5.6, 1.7), (12.3, 3.7), (25.7, 6.7), (55.0, 13.6), (120.0, 31.4), (275.0, 80.0)];

/// What work is reckoned by when plans are compared. In other degrees times go with the degree.
pub(super) fn reference(log_degree: u32) -> Calibration {
    let place = log_degree.clamp(FIRST, FIRST + MICROSECONDS.len() as u32 - 1);
    let (transform, product) = MICROSECONDS[(place - FIRST) as usize];
    let more = f64::from(log_degree) - f64::from(place);
    let milliseconds = |microseconds: f64| microseconds * more.exp2() / 1e3;
    Calibration {
        log_degree,
        transform_ms: milliseconds(transform),
        product_ms: milliseconds(product),
    }
}
