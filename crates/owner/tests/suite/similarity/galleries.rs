//! Galleries put together, taken apart, sent and stored; answers with and without noise.

use super::plain::{Plain, PlainTable};
use super::rows::*;
use ciphervec_he_secret::additive::Decrypt;
use ciphervec_owner::Metric;
use ciphervec_owner::similarity::additive::{
    EncryptedScores, EncryptedVectors, GridPrecision, Layout, OwnerScores, Probes, Rerandomization,
    Vectors,
};

const D: usize = 24;

/// The cosines of one probe against every vector in the gallery, row by row.
fn cosines(scheme: &Plain, gallery: &EncryptedVectors<PlainTable>) -> Vec<f64> {
    let probe = rows(Metric::Cosine, D, 1, 5);
    score(scheme, gallery, &probe, Rerandomization::Fresh).cosines().to_vec()
}

fn same(layout: Layout, left: &[f64], right: &[f64]) {
    assert_eq!(left.len(), right.len());
    let step = if layout == Layout::Horizontal { 2f64.powi(-18) } else { 0.0 };
    for (a, b) in left.iter().zip(right) {
        assert!((a - b).abs() <= step, "{layout:?}: {a} {b}");
    }
}

#[test]
fn appended_galleries_score_as_their_parts() {
    let scheme = Plain::new(2047);
    for layout in LAYOUTS {
        let spec = spec(D, Metric::Cosine, GridPrecision::Standard, layout);
        let parts: Vec<_> = [1, 70, 63, 2, 1]
            .iter()
            .enumerate()
            .map(|(at, &count)| encrypt(&spec, &scheme, &rows(Metric::Cosine, D, count, at as u64)))
            .collect();
        let whole = EncryptedVectors::append(&parts.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(whole.len(), 137);
        let expected: Vec<f64> = parts.iter().flat_map(|part| cosines(&scheme, part)).collect();
        same(layout, &cosines(&scheme, &whole), &expected);
        // Half-full blocks stay where they are, through bytes too.
        let read =
            EncryptedVectors::from_bytes(&scheme, &whole.to_bytes(&scheme).unwrap()).unwrap();
        same(layout, &cosines(&scheme, &read), &expected);
        let again = EncryptedVectors::append(&[&parts[0]]).unwrap();
        same(layout, &cosines(&scheme, &again), &expected[..1]);
    }
}

#[test]
fn selected_blocks_score_as_before() {
    let scheme = Plain::new(2047);
    for layout in LAYOUTS {
        let spec = spec(D, Metric::Cosine, GridPrecision::Standard, layout);
        let count = if layout == Layout::Lanes { 63 * 4 + 9 } else { 9 };
        let gallery = encrypt(&spec, &scheme, &rows(Metric::Cosine, D, count, 3));
        let all = cosines(&scheme, &gallery);
        for blocks in [&[0][..], &[4], &[2, 3, 4, 0], &[1, 1], &[0, 1, 2, 3, 4]] {
            let selected = gallery.select(blocks).unwrap();
            let expected: Vec<f64> =
                blocks.iter().flat_map(|&block| all[gallery.vectors_of(block)].to_vec()).collect();
            same(layout, &cosines(&scheme, &selected), &expected);
        }
        assert!(gallery.select(&[]).is_err());
        let text = gallery.select(&[0, gallery.blocks()]).unwrap_err().to_string();
        assert!(text.contains(&format!("0 to {}", gallery.blocks() - 1)), "{text}");
    }
}

#[test]
fn galleries_of_another_kind_are_not_mixed() {
    let scheme = Plain::new(2047);
    let other = Plain::with_key(2047, *b"otherkey");
    let rows = rows(Metric::Cosine, D, 2, 1);
    let one = spec(D, Metric::Cosine, GridPrecision::Standard, Layout::Elements);
    let gallery = encrypt(&one, &scheme, &rows);
    for different in [
        encrypt(
            &spec(D / 2, Metric::Cosine, GridPrecision::Standard, Layout::Elements),
            &scheme,
            &rows,
        ),
        encrypt(&spec(D, Metric::L2, GridPrecision::Standard, Layout::Elements), &scheme, &rows),
        encrypt(&spec(D, Metric::Cosine, GridPrecision::High, Layout::Elements), &scheme, &rows),
        encrypt(&spec(D, Metric::Cosine, GridPrecision::Standard, Layout::Lanes), &scheme, &rows),
        encrypt(&one, &other, &rows),
    ] {
        assert!(EncryptedVectors::append(&[&gallery, &different]).is_err(), "{different:?}");
    }
    assert!(EncryptedVectors::<PlainTable>::append(&[]).is_err());

    let probes = Probes::quantize(&one, &rows).unwrap();
    let text = gallery.score(&other, &probes).unwrap_err().to_string();
    assert!(text.contains("wrong key"), "{text}");
    assert!(gallery.to_bytes(&other).is_err());
    let scores = gallery.score(&scheme, &probes).unwrap();
    assert!(scores.open(&other).is_err() && scores.to_bytes(&other).is_err());
    let high = spec(D, Metric::Cosine, GridPrecision::High, Layout::Elements);
    let text = gallery.score(&scheme, &Probes::quantize(&high, &rows).unwrap()).unwrap_err();
    assert!(text.to_string().contains("precision high"), "{text}");
    assert!(
        EncryptedVectors::encrypt(&one, &scheme, &Vectors::quantize(&high, &rows).unwrap())
            .is_err()
    );
    // Probes fit every layout of their kind.
    let lanes =
        encrypt(&spec(D, Metric::Cosine, GridPrecision::Standard, Layout::Lanes), &scheme, &rows);
    assert!(lanes.score(&scheme, &probes).is_ok());
}

#[test]
fn objects_go_through_bytes() {
    let scheme = Plain::new(2047);
    for layout in LAYOUTS {
        for metric in METRICS {
            for count in [1, 4, 300] {
                let spec = spec(D, metric, GridPrecision::Standard, layout);
                let vectors = Vectors::quantize(&spec, &rows(metric, D, count, 1)).unwrap();
                let gallery = EncryptedVectors::encrypt(&spec, &scheme, &vectors).unwrap();
                let probes = Probes::quantize(&spec, &rows(metric, D, 2, 2)).unwrap();
                let read =
                    EncryptedVectors::from_bytes(&scheme, &gallery.to_bytes(&scheme).unwrap())
                        .unwrap();
                assert_eq!(read.table(), gallery.table());
                let sent = Probes::from_bytes(&probes.to_bytes()).unwrap();
                let scores = read.score(&scheme, &sent).unwrap();
                let bytes = scores.to_bytes(&scheme).unwrap();
                let answer = EncryptedScores::from_bytes(&scheme, &bytes).unwrap();
                assert_eq!(answer.to_bytes(&scheme).unwrap(), bytes);
                let (direct, opened) =
                    (scores.open(&scheme).unwrap(), answer.open(&scheme).unwrap());
                assert_eq!(direct.cosines(), opened.cosines());
                let expected =
                    score(&scheme, &gallery, &rows(metric, D, 2, 2), Rerandomization::Fresh);
                if layout != Layout::Horizontal {
                    assert_eq!(opened.cosines(), expected.cosines(), "{layout:?} {metric:?}");
                }
            }
        }
    }
    let high = spec(D, Metric::Cosine, GridPrecision::High, Layout::Lanes);
    let probes = Probes::quantize(&high, &rows(Metric::Cosine, D, 2, 2)).unwrap();
    let sent = Probes::from_bytes(&probes.to_bytes()).unwrap();
    assert_eq!((sent.weights(1), sent.scales()), (probes.weights(1), probes.scales()));
}

#[test]
fn results_carry_fresh_noise_by_default() {
    let scheme = Plain::new(2047);
    for layout in LAYOUTS {
        let spec = spec(D, Metric::Cosine, GridPrecision::Standard, layout);
        let gallery = encrypt(&spec, &scheme, &rows(Metric::Cosine, D, 3, 1));
        let probes = Probes::quantize(&spec, &rows(Metric::Cosine, D, 2, 2)).unwrap();
        let noise = |rerandomization| {
            let scores = gallery.score_with(&scheme, &probes, rerandomization).unwrap();
            scores.table().ciphers.iter().map(|cipher| cipher.noise).collect::<Vec<_>>()
        };
        let bare = noise(Rerandomization::Bare);
        assert_eq!(bare, noise(Rerandomization::Bare), "{layout:?}");
        let (first, second) = (noise(Rerandomization::default()), noise(Rerandomization::Fresh));
        for index in 0..bare.len() {
            assert!(first[index] != bare[index] && first[index] != second[index], "{layout:?}");
        }
    }
}

/// Without masks the neighbours of a horizontal score are products of the vector with shifted probes; with them they
/// are numbers that differ from one answer to the next.
#[test]
fn horizontal_neighbours_are_hidden_by_default() {
    let scheme = Plain::new(2047);
    let spec = spec(D, Metric::Cosine, GridPrecision::Standard, Layout::Horizontal);
    let row = rows(Metric::Cosine, D, 1, 1);
    let gallery = encrypt(&spec, &scheme, &row);
    let probes = Probes::quantize(&spec, &rows(Metric::Cosine, D, 1, 2)).unwrap();
    let open = |rerandomization| {
        let scores = gallery.score_with(&scheme, &probes, rerandomization).unwrap();
        let messages = scheme.decrypt(scores.table(), 2047).unwrap();
        messages.row(0).to_vec()
    };
    let elements = super::rows::spec(D, Metric::Cosine, GridPrecision::Standard, Layout::Elements);
    let table = encrypt(&elements, &scheme, &row);
    let x = scheme.decrypt(table.table(), 64).unwrap();
    let lowest = i128::from(x.to_i64(0).unwrap()) * i128::from(probes.weights(0)[D - 1]);
    let slot = |words: &[u64]| i128::from((words[0] << 32) as i64 >> 32);
    let bare = open(Rerandomization::Bare);
    assert_eq!(slot(&bare), lowest, "the lowest coefficient is x_0 q_(d-1)");
    assert_eq!(bare, open(Rerandomization::Bare));
    let (first, second) = (open(Rerandomization::Fresh), open(Rerandomization::Fresh));
    let middle = 32 * (D - 1);
    // 736 bits below the score, and all words above it.
    for word in (0..middle / 64).chain(middle / 64 + 2..23) {
        assert!(first[word] != bare[word] && first[word] != second[word], "word {word}");
    }
}

#[test]
fn thresholds_compare_what_is_reported() {
    let scheme = Plain::new(2047);
    for layout in LAYOUTS {
        for metric in METRICS {
            let spec = spec(D, metric, GridPrecision::Standard, layout);
            let gallery_rows = rows(metric, D, 7, 1);
            let probe_rows = rows(metric, D, 2, 2);
            let vectors = Vectors::quantize(&spec, &gallery_rows).unwrap();
            let gallery = EncryptedVectors::encrypt(&spec, &scheme, &vectors).unwrap();
            let probes = Probes::quantize(&spec, &probe_rows).unwrap();
            let scores = gallery.score(&scheme, &probes).unwrap().open(&scheme).unwrap();
            let values = scores.values(vectors.norms(), probes.norms()).unwrap();
            for &threshold in &values {
                let matches = scores.matches(threshold, vectors.norms(), probes.norms()).unwrap();
                for (value, matched) in values.iter().zip(matches) {
                    let expected = if metric.higher_is_closer() {
                        *value >= threshold
                    } else {
                        *value <= threshold
                    };
                    assert_eq!(matched, expected, "{layout:?} {metric:?}");
                }
            }
            assert!(scores.matches(f64::NAN, vectors.norms(), probes.norms()).is_err());
            let needs_norms = matches!(metric, Metric::InnerProduct | Metric::L2);
            assert_eq!(scores.values(&[], &[]).is_err(), needs_norms);
            assert_eq!(scores.values(vectors.norms(), &[1.0]).is_err(), needs_norms);
            assert_eq!(format!("{scores:?}"), "Scores(2 probes, 7 vectors, redacted)");
        }
    }
}
