//! The scales that unit vectors and queries are multiplied by in the ring form, by level.

use crate::index::form::Rows;
use crate::index::spec::IndexSpec;
use ciphervec_he_secret::lattice::Scales;
use ciphervec_he_secret::lattice::ring::Ring;

/// log2 of Δx of encrypted vectors: their noise and the query's weigh about the same at the bulk level.
const ENCRYPTED_LOG_SCALE: f64 = 18.7;
/// Plain vectors carry no noise, so that more of the modulus can go to the query.
const PLAIN_LOG_SCALE: f64 = 16.0;

/// The scale of unit vectors, fixed when they are sealed. For signs it makes every coordinate ±c for an integer c, so that inner
/// products stay exact.
pub fn vector_scale(spec: &IndexSpec, rows: Rows) -> f64 {
    let log_scale = match rows {
        Rows::Encrypted => ENCRYPTED_LOG_SCALE,
        Rows::Plain => PLAIN_LOG_SCALE,
    };
    if !spec.metric().compares_signs() {
        return f64::exp2(log_scale);
    }
    let root = (spec.dimension() as f64).sqrt();
    // Whole bits at d dimensions need an error below 1/d: the vectors' noise must shrink with d.
    let scale = f64::exp2(log_scale) * (spec.dimension() as f64 / 2048.0).max(1.0);
    (scale / root).round().max(1.0) * root
}

/// Both scales of a query; `top_level` is the deepest level it serves.
pub fn scales(spec: &IndexSpec, rows: Rows, ring: &Ring, top_level: u8) -> Scales {
    let vector = vector_scale(spec, rows);
    let query = ring.scales(vector, top_level).query;
    if !spec.metric().compares_signs() {
        return Scales { vector, query };
    }
    let root = (spec.dimension() as f64).sqrt();
    Scales { vector, query: (query / root).floor() * root }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::quantize::check;
    use crate::{Metric, Mode, Precision};

    #[test]
    fn sign_vectors_quantise_to_one_integer() {
        for (mode, rows_kind) in [(Mode::Sealed, Rows::Encrypted), (Mode::SealedQuery, Rows::Plain)]
        {
            for dimension in [1, 7, 512, 16384] {
                let spec =
                    IndexSpec::new("test", dimension, Metric::Hamming, mode, Precision::Standard)
                        .unwrap();
                let rows: Vec<f32> =
                    (0..dimension).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
                let scale = vector_scale(&spec, rows_kind);
                let values = check(&spec, &rows).unwrap().quantize(scale).values();
                let unit = values[0];
                assert!(
                    unit >= 1 && values.iter().all(|value| value.abs() == unit),
                    "{mode:?} {dimension}"
                );
            }
        }
    }
}
