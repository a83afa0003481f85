//! Opened vectors against the unit vectors that were encrypted: within half a unit of the grid, and on it.

use super::hostile::fit;
use super::plain::{Plain, PlainTable};
use super::rows::*;
use ciphervec_he_secret::additive::{Decrypt, Evaluate};
use ciphervec_he_secret::paillier::Noise;
use ciphervec_he_secret::{damgard_jurik, elgamal, okamoto_uchiyama, paillier};
use ciphervec_owner::similarity::additive::{
    EncryptedVectors, GridPrecision, Layout, OwnerVectors, Vectors,
};
use ciphervec_owner::{Error, Metric};

/// X of each precision, as docs/additive.md has it.
fn scale(precision: GridPrecision) -> f64 {
    match precision {
        GridPrecision::Small => 4_000.0,
        GridPrecision::Standard => 65_000.0,
        GridPrecision::High => 2f64.powi(47) - 128.0,
    }
}

fn check(metric: Metric, precision: GridPrecision, dimension: usize, rows: &[f64], opened: &[f64]) {
    assert_eq!(opened.len(), rows.len());
    if metric == Metric::Hamming {
        return assert_eq!(opened, rows);
    }
    let x = scale(precision);
    for (row, opened) in rows.chunks_exact(dimension).zip(opened.chunks_exact(dimension)) {
        let norm = norm(row);
        for (&exact, &found) in row.iter().zip(opened) {
            let unit = if norm == 0.0 { 0.0 } else { exact / norm };
            assert!((found - unit).abs() <= 0.5 / x + 2e-15, "{precision:?}: {found} {unit}");
            assert_eq!(found, (found * x).round() / x, "{precision:?}: not on the grid");
        }
    }
}

#[test]
fn every_layout_metric_and_precision() {
    let scheme = Plain::new(2047);
    for layout in LAYOUTS {
        for metric in METRICS {
            for precision in PRECISIONS {
                for (dimension, count) in [(1, 1), (1, 80), (7, 3), (40, 1), (40, 100), (131, 2)] {
                    let spec = spec(dimension, metric, precision, layout);
                    let mut given = rows(metric, dimension, count, 7);
                    if metric == Metric::L2 {
                        given[..dimension].fill(0.0);
                    }
                    let gallery = encrypt(&spec, &scheme, &given);
                    let opened = gallery.open(&scheme).unwrap();
                    check(metric, precision, dimension, &given, &opened);
                    // Blocks that are not full, beside others.
                    let twice = EncryptedVectors::append(&[&gallery, &gallery]).unwrap();
                    let opened = twice.open(&scheme).unwrap();
                    check(metric, precision, dimension, &[&given[..], &given].concat(), &opened);
                    let some = [2 * count - 1, 0, count, count / 2, 0];
                    let picked: Vec<f64> = some
                        .iter()
                        .flat_map(|row| &opened[row * dimension..][..dimension])
                        .copied()
                        .collect();
                    assert_eq!(*twice.open_rows(&scheme, &some).unwrap(), picked);
                    assert!(twice.open_rows(&scheme, &[]).unwrap().is_empty());
                    let beyond = twice.open_rows(&scheme, &[2 * count]);
                    assert!(matches!(beyond, Err(Error::Range { .. })));
                }
            }
        }
    }
}

fn real<K: Decrypt>(keys: &K, layouts: &[Layout], precision: GridPrecision) {
    for &layout in layouts {
        for (metric, count) in [(Metric::Cosine, 1), (Metric::L2, 9), (Metric::Hamming, 3)] {
            let spec = spec(19, metric, precision, layout);
            let given = rows(metric, 19, count, 3);
            let vectors = Vectors::quantize(&spec, &given).unwrap();
            let gallery = EncryptedVectors::encrypt_as_owner(&spec, keys, &vectors).unwrap();
            let sent = gallery.to_bytes(keys.public()).unwrap();
            let stored = EncryptedVectors::from_bytes(keys.public(), &sent).unwrap();
            check(metric, precision, 19, &given, &stored.open(keys).unwrap());
        }
    }
}

#[test]
fn every_scheme() {
    let keys = paillier::insecure_generate(512, Noise::ShortExponent).unwrap();
    real(&keys, &LAYOUTS, GridPrecision::High);
    real(&damgard_jurik::insecure_generate(256, 2).unwrap(), &LAYOUTS, GridPrecision::Standard);
    let keys = okamoto_uchiyama::insecure_generate(1536, okamoto_uchiyama::Noise::Short);
    real(&keys.unwrap(), &LAYOUTS, GridPrecision::Standard);
    real(&elgamal::SecretKey::generate().unwrap(), &[Layout::Elements], GridPrecision::Standard);
}

/// Bytes of one description read as those of another: the same ciphertexts, other bounds.
#[test]
fn rows_that_no_vector_rounds_to_are_refused_without_a_value() {
    let scheme = Plain::new(2047);
    let bound = |bytes: &[u8]| {
        let read = EncryptedVectors::<PlainTable>::from_bytes(&scheme, bytes).unwrap();
        matches!(read.open(&scheme), Err(Error::Scheme(ciphervec_he_secret::Error::Bound)))
    };
    let (dimension, metric_at, precision_at) = (12, 64 + 4, 64 + 5);
    let made = |metric| {
        let spec = spec(dimension, metric, GridPrecision::Standard, Layout::Elements);
        encrypt(&spec, &scheme, &rows(metric, dimension, 2, 1)).to_bytes(&scheme).unwrap()
    };
    let mut smaller = made(Metric::Cosine);
    assert!(!bound(&smaller));
    smaller[precision_at] = GridPrecision::Small as u8;
    fit(&mut smaller);
    assert!(bound(&smaller), "coordinates up to 65,000 are no row of precision small");
    let mut signs = made(Metric::Cosine);
    signs[metric_at] = Metric::Hamming as u8;
    fit(&mut signs);
    assert!(bound(&signs), "coordinates that are not ±1 are no row under hamming");
    // A lane beyond the last vector that is in use.
    let spec = spec(dimension, Metric::Cosine, GridPrecision::Standard, Layout::Lanes);
    let given = rows(Metric::Cosine, dimension, 3, 1);
    let mut fewer = encrypt(&spec, &scheme, &given).to_bytes(&scheme).unwrap();
    assert!(!bound(&fewer));
    fewer[64 + 11] = 2;
    fit(&mut fewer);
    assert!(bound(&fewer), "a third vector lies where two are said to be");
}

#[test]
fn other_keys_do_not_open() {
    let (scheme, other) = (Plain::new(2047), Plain::with_key(2047, *b"otherkey"));
    let spec = spec(5, Metric::Cosine, GridPrecision::Standard, Layout::Lanes);
    let gallery = encrypt(&spec, &scheme, &rows(Metric::Cosine, 5, 3, 1));
    let refused = gallery.open(&other).unwrap_err();
    assert!(
        matches!(refused, Error::Scheme(ciphervec_he_secret::Error::WrongKey { .. })),
        "{refused}"
    );
    assert_ne!(scheme.public().key_id(), other.public().key_id());
}
