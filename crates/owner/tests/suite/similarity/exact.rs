//! Scores of every layout, metric and precision: exact as integers, close as floats.

use super::plain::Plain;
use super::rows::*;
use ciphervec_he_secret::additive::Decrypt;
use ciphervec_owner::Metric;
use ciphervec_owner::similarity::additive::{
    EncryptedVectors, GridPrecision, Layout, OwnerScores, OwnerVectors, Probes, Rerandomization,
    Vectors,
};

/// The integers of every vector, as an element-wise table shows them.
fn integers(
    scheme: &Plain,
    rows: &[f64],
    probes: &Probes,
    like: &ciphervec_owner::similarity::additive::VectorSpec,
) -> Vec<i128> {
    let spec = spec(like.dimension(), like.metric(), like.precision(), Layout::Elements);
    let d = spec.dimension();
    let mut scores = Vec::new();
    for probe in 0..probes.len() {
        for row in rows.chunks(d) {
            let one = encrypt(&spec, scheme, row);
            let messages = scheme.decrypt(one.table(), 64).unwrap();
            let x = (0..d).map(|at| i128::from(messages.to_i64(at).unwrap()));
            scores.push(x.zip(probes.weights(probe)).map(|(x, &q)| x * i128::from(q)).sum());
        }
    }
    scores
}

fn divisor(spec: &ciphervec_owner::similarity::additive::VectorSpec, scale: u64) -> f64 {
    let x = match spec.precision() {
        GridPrecision::Small => 4_000.0,
        GridPrecision::Standard => 65_000.0,
        GridPrecision::High => ((1u64 << 47) - 128) as f64,
    };
    if spec.metric() == Metric::Hamming { 2.0 * spec.dimension() as f64 } else { x * scale as f64 }
}

fn step(precision: GridPrecision) -> f64 {
    match precision {
        GridPrecision::Small => 2f64.powi(-14),
        GridPrecision::Standard => 2f64.powi(-18),
        GridPrecision::High => 2f64.powi(-44),
    }
}

/// Everything about `count` vectors of `dimension` against three probes.
fn check(
    scheme: &Plain,
    metric: Metric,
    precision: GridPrecision,
    layout: Layout,
    dimension: usize,
    count: usize,
) {
    let name = format!("{metric:?} {precision:?} {layout:?} d = {dimension} E = {count}");
    let spec = spec(dimension, metric, precision, layout);
    let gallery_rows = rows(metric, dimension, count, 7);
    let mut probe_rows = rows(metric, dimension, 2, 8);
    // The first vector, turned round.
    probe_rows.extend(gallery_rows[..dimension].iter().map(|x| -3.0 * x));
    if metric == Metric::Hamming {
        probe_rows.iter_mut().for_each(|x| *x = x.signum());
    }
    let vectors = Vectors::quantize(&spec, &gallery_rows).unwrap();
    let probes = Probes::quantize(&spec, &probe_rows).unwrap();
    let gallery = EncryptedVectors::encrypt_as_owner(&spec, scheme, &vectors).unwrap();
    assert_eq!(gallery.len(), count, "{name}");
    let scores = gallery.score(scheme, &probes).unwrap();
    assert_eq!((scores.probes(), scores.vectors()), (3, count), "{name}");
    let opened = scores.open(scheme).unwrap();

    let exact = integers(scheme, &gallery_rows, &probes, &spec);
    let bound = spec.error_bound();
    let values = opened.values(vectors.norms(), probes.norms()).unwrap();
    for (index, (&found, &integer)) in opened.cosines().iter().zip(&exact).enumerate() {
        assert!(integer.unsigned_abs() <= spec.score_bound(), "{name}");
        let raw = integer as f64 / divisor(&spec, probes.scales()[index / count]);
        let (a, b) = (index % count * dimension, index / count * dimension);
        let (a, b) = (&gallery_rows[a..a + dimension], &probe_rows[b..b + dimension]);
        let expected = value(metric, a, b);
        if metric == Metric::Hamming {
            assert_eq!(values[index], expected, "{name}");
            continue;
        }
        let rounded = ((raw / step(precision)).round() * step(precision)).clamp(-1.0, 1.0);
        if layout == Layout::Horizontal {
            // One unit of the grid may cross a rounding boundary.
            assert!((found - rounded).abs() <= step(precision), "{name}: {found} {rounded}");
        } else {
            assert_eq!(found, rounded, "{name}");
        }
        let error = (found - cosine(a, b)).abs();
        assert!(error <= bound.worst_case, "{name}: error {error:e}, {bound:?}");
        assert!(error <= bound.tail, "{name}: error {error:e}, {bound:?}");
        let scale = match metric {
            Metric::Cosine => 1.0,
            Metric::InnerProduct => norm(a) * norm(b),
            _ => 2.0 * norm(a) * norm(b) + 1e-3 * (norm(a) - norm(b)).powi(2),
        };
        assert!(
            (values[index] - expected).abs() <= scale * (bound.worst_case + 1e-12),
            "{name}: {} {expected}",
            values[index]
        );
    }
}

#[test]
fn every_layout_metric_and_precision_on_small_and_odd_dimensions() {
    let scheme = Plain::new(2047);
    for metric in METRICS {
        for precision in PRECISIONS {
            for layout in LAYOUTS {
                for dimension in [1, 2, 3, 65] {
                    for count in [1, 2, 5] {
                        check(&scheme, metric, precision, layout, dimension, count);
                    }
                }
            }
        }
    }
}

#[test]
fn full_partial_and_overfull_blocks() {
    let scheme = Plain::new(2047);
    for (metric, precision, lanes) in [
        (Metric::Cosine, GridPrecision::Standard, 63),
        (Metric::L2, GridPrecision::High, 21),
        (Metric::InnerProduct, GridPrecision::Small, 78),
        (Metric::Hamming, GridPrecision::Standard, 255),
    ] {
        let packing = spec(17, metric, precision, Layout::Lanes).packing(2047).unwrap();
        assert_eq!(packing.lanes(), lanes, "{metric:?} {precision:?}");
        for count in [lanes - 1, lanes, lanes + 1, 5 * lanes + 3] {
            check(&scheme, metric, precision, Layout::Lanes, 17, count);
        }
    }
}

#[test]
fn dimensions_of_real_embeddings() {
    let scheme = Plain::new(2047);
    for precision in PRECISIONS {
        for layout in LAYOUTS {
            check(&scheme, Metric::Cosine, precision, layout, 512, 6);
            check(&scheme, Metric::L2, precision, layout, 4096, 2);
        }
    }
    for layout in LAYOUTS {
        check(&scheme, Metric::Hamming, GridPrecision::Standard, layout, 4096, 2);
    }
}

#[test]
fn messages_of_every_scheme() {
    // Okamoto–Uchiyama at |n| = 2,048; Paillier at 3,072; Damgård–Jurik with s = 2.
    for bits in [617, 3071, 4095] {
        let scheme = Plain::new(bits);
        for layout in LAYOUTS {
            check(&scheme, Metric::Cosine, GridPrecision::Standard, layout, 128, 23);
            check(&scheme, Metric::Cosine, GridPrecision::High, layout, 31, 8);
        }
    }
    // ElGamal decrypts small numbers only.
    check(&Plain::new(25), Metric::Cosine, GridPrecision::Small, Layout::Elements, 512, 3);
    check(&Plain::new(31), Metric::Cosine, GridPrecision::Standard, Layout::Elements, 512, 3);
}

#[test]
fn one_is_one() {
    let scheme = Plain::new(2047);
    for layout in LAYOUTS {
        for precision in PRECISIONS {
            let spec = spec(4, Metric::Cosine, precision, layout);
            let rows = [0.0, 0.0, 5e-7, 0.0, 1.0, -1.0, 1.0, 1.0];
            let gallery = encrypt(&spec, &scheme, &rows);
            let probes = [0.0, 0.0, 9e9, 0.0, 0.0, 0.0, -2.0, 0.0, 3.0, -3.0, 3.0, 3.0];
            let scores = score(&scheme, &gallery, &probes, Rerandomization::Fresh);
            let cosines = scores.cosines();
            assert_eq!((cosines[0], cosines[1]), (1.0, 0.5), "{layout:?} {precision:?}");
            assert_eq!((cosines[2], cosines[3]), (-1.0, -0.5), "{layout:?} {precision:?}");
            assert_eq!((cosines[4], cosines[5]), (0.5, 1.0), "{layout:?} {precision:?}");
        }
    }
}

#[test]
fn zero_vectors_count_where_norms_carry_the_value() {
    let scheme = Plain::new(2047);
    for layout in LAYOUTS {
        let spec = spec(3, Metric::L2, GridPrecision::Standard, layout);
        let rows = [0.0, 0.0, 0.0, 3.0, 0.0, 4.0];
        let gallery = encrypt(&spec, &scheme, &rows);
        let scores =
            score(&scheme, &gallery, &[0.0, 0.0, 0.0, 0.0, 0.0, 8.0], Rerandomization::Fresh);
        let values = scores.values(&[0.0, 5.0], &[0.0, 8.0]).unwrap();
        assert_eq!(values[..3], [0.0, 25.0, 64.0], "{layout:?}");
        // 25 + 64 − 2 · 5 · 8 · 0.8
        assert!((values[3] - 25.0).abs() < 80.0 * 1e-4, "{layout:?}: {values:?}");
    }
}

/// What the docs promise, measured over many pairs: standard deviations as derived, extremes below the named error.
#[test]
fn measured_errors_are_those_derived() {
    let scheme = Plain::new(2047);
    for (precision, promised) in [
        (GridPrecision::Small, 1e-3),
        (GridPrecision::Standard, 1e-4),
        (GridPrecision::High, 1e-12),
    ] {
        let spec = spec(512, Metric::Cosine, precision, Layout::Lanes);
        let mut random = Random(99);
        let mut draw = |count: usize| (0..count * 512).map(|_| random.normal()).collect::<Vec<_>>();
        let (gallery_rows, probe_rows) = (draw(60), draw(30));
        let gallery = encrypt(&spec, &scheme, &gallery_rows);
        let scores = score(&scheme, &gallery, &probe_rows, Rerandomization::Fresh);
        let errors = scores.cosines().iter().enumerate().map(|(index, found)| {
            let (row, probe) = (index % 60 * 512, index / 60 * 512);
            found - cosine(&gallery_rows[row..row + 512], &probe_rows[probe..probe + 512])
        });
        let errors: Vec<f64> = errors.collect();
        let largest = errors.iter().fold(0.0f64, |most, error| most.max(error.abs()));
        let deviation = (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt();
        let typical = spec.error_bound().typical;
        println!(
            "{precision:?}: deviation {deviation:.3e}, derived {typical:.3e}, largest {largest:.3e}"
        );
        assert!(largest <= promised, "{precision:?}: {largest:e}");
        // The bound is for the smallest scale a probe may get; most get a larger one.
        assert!(
            deviation <= 1.05 * typical && deviation > 0.7 * typical,
            "{precision:?}: {deviation:e}"
        );
    }
}
