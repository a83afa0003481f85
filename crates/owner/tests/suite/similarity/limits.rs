//! What must not work: weights that steal a template, vectors that overflow, schemes too small for a layout.

use super::plain::{Plain, PlainTable};
use super::rows::*;
use ciphervec_he_secret::additive::{Evaluate, Messages, Table};
use ciphervec_owner::similarity::additive::{
    EncryptedVectors, GridPrecision, Layout, OwnerScores, Probes, Rerandomization, Vectors,
};
use ciphervec_owner::{Error, Metric};

/// One probe with weights 1, B, B², … writes several coordinates into a single score, each in a place of its own.
/// On the bare scheme it works; the score API refuses the weights, in memory and from bytes.
#[test]
fn packed_weights_steal_a_template_from_the_bare_scheme_and_not_through_the_api() {
    let scheme = Plain::new(2047);
    let spec = spec(3, Metric::Cosine, GridPrecision::Standard, Layout::Elements);
    let row = [0.48, -0.6, 0.64];
    let gallery = encrypt(&spec, &scheme, &row);

    let weights = [1, 1 << 20, 1 << 40];
    let stolen = scheme.weighted_sum_along_vartime(gallery.table(), &weights).unwrap();
    let packed = ciphervec_he_secret::additive::Decrypt::decrypt(&scheme, &stolen, 64).unwrap();
    let mut rest = packed.to_i64(0).unwrap();
    for expected in row {
        let coordinate = (rest << 44) >> 44;
        rest = (rest - coordinate) >> 20;
        assert_eq!(coordinate, (expected * 65_000.0f64).round() as i64, "the weakened path leaks");
    }

    for scale in [13_312, 16_384, 1 << 40] {
        assert!(matches!(
            Probes::from_weights(&spec, &weights, &[scale]),
            Err(Error::Range { .. })
        ));
    }
    // Inside the bounds there is room for one number of 16 bits and little else.
    assert!(Probes::from_weights(&spec, &[1, 0, 1 << 15], &[16_384]).is_err());
}

/// The sum of squares is bounded by what unit vectors have; every weight at its largest is refused.
#[test]
fn weights_longer_than_a_unit_vector_are_refused() {
    for precision in PRECISIONS {
        for dimension in [2, 512] {
            let spec = spec(dimension, Metric::Cosine, precision, Layout::Elements);
            let one =
                Probes::quantize(&spec, &[vec![1.0], vec![0.0; dimension - 1]].concat()).unwrap();
            let (largest, scale) = (one.weights(0)[0], one.scales()[0]);
            assert_eq!(largest as u64, scale);
            let text =
                Probes::from_weights(&spec, &vec![largest; dimension], &[scale]).unwrap_err();
            assert!(text.to_string().contains("squares"), "{text}");
        }
    }
    let signs = spec(4, Metric::Hamming, GridPrecision::Standard, Layout::Elements);
    assert!(Probes::from_weights(&signs, &[2, -2, 2, 2], &[2]).is_ok());
    assert!(Probes::from_weights(&signs, &[3, -2, 2, 0], &[2]).is_err());
    assert!(Probes::from_weights(&signs, &[2, -2, 2, 2], &[1]).is_err());
}

/// A gallery whose vectors are `factor` times too long: made by adding it to itself.
fn too_long(
    scheme: &Plain,
    spec: &ciphervec_owner::similarity::additive::VectorSpec,
    rows: &[f64],
    doublings: u32,
) -> EncryptedVectors<PlainTable> {
    let gallery = encrypt(spec, scheme, rows);
    let mut table = gallery.table().clone();
    for _ in 0..doublings {
        table = scheme.add(&table, &table).unwrap();
    }
    // The bytes take any table of the right shape.
    let mut bytes = gallery.to_bytes(scheme).unwrap();
    let inner = scheme.table_to_bytes(&table);
    let at = bytes.len() - inner.len();
    bytes[at..].copy_from_slice(&inner);
    super::hostile::fit(&mut bytes);
    EncryptedVectors::from_bytes(scheme, &bytes).unwrap()
}

#[test]
fn overflow_is_an_error_and_never_a_number() {
    let scheme = Plain::new(2047);
    for layout in LAYOUTS {
        for precision in PRECISIONS {
            let spec = spec(2, Metric::Cosine, precision, layout);
            let rows = [[0.6, 0.8].as_slice(), &[1.0, 0.0], &[-0.8, 0.6]].concat();
            let probes = Probes::quantize(&spec, &[0.6, 0.8, 0.0, -1.0]).unwrap();
            // Side by side, what leaves a slot by more than its guard bit reaches the neighbours.
            let doublings: &[u32] = if layout == Layout::Elements { &[1, 5, 20] } else { &[1] };
            for &doublings in doublings {
                let gallery = too_long(&scheme, &spec, &rows, doublings);
                let scores = gallery.score(&scheme, &probes).unwrap();
                let error = scores.open(&scheme).unwrap_err();
                assert!(
                    matches!(error, Error::Scheme(ciphervec_he_secret::Error::Bound)),
                    "{layout:?} {precision:?} {doublings}: {error}"
                );
            }
        }
    }
    let spec = spec(1, Metric::Cosine, GridPrecision::Standard, Layout::Elements);
    let gallery = too_long(&scheme, &spec, &[1.0], 1);
    let probes = Probes::quantize(&spec, &[-1.0]).unwrap();
    assert!(gallery.score(&scheme, &probes).unwrap().open(&scheme).is_err());
}

/// Random residues in place of scores, as a scheme decrypts what was never encrypted, are refused.
#[test]
fn residues_that_are_no_scores_are_refused() {
    let mut random = Random(4);
    for bits in [617, 2047] {
        let scheme = Plain::new(bits);
        for layout in LAYOUTS {
            let spec = spec(64, Metric::Cosine, GridPrecision::Standard, layout);
            let gallery = encrypt(&spec, &scheme, &rows(Metric::Cosine, 64, 5, 1));
            let probes = Probes::quantize(&spec, &rows(Metric::Cosine, 64, 1, 2)).unwrap();
            for _ in 0..50 {
                let scores = gallery.score(&scheme, &probes).unwrap();
                let mut messages = Messages::zeros(bits as usize / 64 + 1, scores.ciphertexts());
                for index in 0..messages.len() {
                    messages.row_mut(index).iter_mut().for_each(|word| *word = random.next());
                    let top = messages.width() - 1;
                    // Just inside what the scheme takes.
                    messages.row_mut(index)[top] >>= (64 - bits % 64) + 2;
                }
                let table = Evaluate::encrypt(&scheme, 1, messages.len(), &messages).unwrap();
                assert_eq!(table.columns(), scores.ciphertexts());
                let mut bytes = scores.to_bytes(&scheme).unwrap();
                let inner = scheme.table_to_bytes(&table);
                let at = bytes.len() - inner.len();
                bytes[at..].copy_from_slice(&inner);
                super::hostile::fit(&mut bytes);
                let forged = ciphervec_owner::similarity::additive::EncryptedScores::from_bytes(
                    &scheme, &bytes,
                )
                .unwrap();
                assert!(forged.open(&scheme).is_err(), "{bits} {layout:?}");
            }
        }
    }
}

#[test]
fn schemes_of_small_messages_say_what_they_can_do() {
    let elgamal = Plain::new(26);
    let row = rows(Metric::Cosine, 8, 1, 1);
    for (layout, precision, word) in [
        (Layout::Elements, GridPrecision::Standard, "31 bits"),
        (Layout::Elements, GridPrecision::High, "95 bits"),
        (Layout::Lanes, GridPrecision::Small, "layout elements"),
        (Layout::Horizontal, GridPrecision::Small, "layout elements"),
    ] {
        let spec = spec(8, Metric::Cosine, precision, layout);
        let vectors = Vectors::quantize(&spec, &row).unwrap();
        let text = EncryptedVectors::encrypt(&spec, &elgamal, &vectors).unwrap_err().to_string();
        assert!(text.contains(word) && text.contains("26 bits"), "{text}");
    }
    let spec = spec(8, Metric::Cosine, GridPrecision::Small, Layout::Elements);
    let gallery = encrypt(&spec, &elgamal, &row);
    assert_eq!(score(&elgamal, &gallery, &row, Rerandomization::Fresh).cosines().len(), 1);
}
