//! The scales that unit vectors and queries are multiplied by in the compact form.

use crate::index::spec::IndexSpec;
use ciphervec_he_secret::lattice::Scales;
use ciphervec_he_secret::lattice::compact::Width;

/// Scales of vectors and queries, fixed when vectors are sealed. For signs every coordinate is ±c for an integer c, so that
/// inner products stay exact.
pub fn scales(spec: &IndexSpec, width: Width) -> Scales {
    if !spec.metric().compares_signs() {
        return width.unit_scales();
    }
    let root = (spec.dimension() as f64).sqrt();
    Scales { vector: width.sign_scales(spec.dimension()).vector * root, query: root }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::quantize::check;
    use crate::{Metric, Mode, Precision};

    #[test]
    fn sign_vectors_quantise_to_one_integer() {
        for (precision, width) in [
            (Precision::Standard, Width::Standard),
            (Precision::Small, Width::Small),
            (Precision::Wide, Width::Wide),
        ] {
            for dimension in [1, 7, 512, 16384] {
                let spec = IndexSpec::new(
                    "test",
                    dimension,
                    Metric::Hamming,
                    Mode::SealedIndex,
                    precision,
                )
                .unwrap();
                let rows: Vec<f32> =
                    (0..dimension).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
                let scale = scales(&spec, width).vector;
                let values = check(&spec, &rows).unwrap().quantize(scale).values();
                let unit = values[0];
                assert!(
                    unit >= 1 && values.iter().all(|value| value.abs() == unit),
                    "{width:?} {dimension}"
                );
            }
        }
    }
}
