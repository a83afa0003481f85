//! The compact form end to end, against exact inner products.

use crate::rows::{Rows, dot};
use ciphervec_arith::AlignedBytes;
use ciphervec_he::keys::MasterKey;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::lattice::compact::{self, Compact, Masks, SegmentKey, Width};

const WIDTHS: [Width; 3] = [Width::Standard, Width::Small, Width::Wide];

struct Setup {
    scheme: Compact,
    masks: Masks,
    master: MasterKey,
}

impl Setup {
    /// Stored words and the key that opens them.
    fn seal(&self, rows: &Rows) -> (AlignedBytes, SegmentKey) {
        let (id, words) =
            compact::seal(&self.scheme, &self.masks, &self.master, b"collection", rows).unwrap();
        let count = rows.values.len() / rows.dimension;
        (words, SegmentKey::derive(&self.scheme, &self.master, b"collection", id, count))
    }
}

fn setup(width: Width, dimension: usize) -> Setup {
    let scheme = Compact::new(width).unwrap();
    let master = MasterKey::from_bytes([3; 32]);
    let masks = Masks::new(&scheme, [4; 32], dimension);
    Setup { scheme, masks, master }
}

/// Seal, scan, unmask: scores in units of one.
fn scores(setup: &Setup, rows: &Rows, queries: &[i64]) -> Vec<f64> {
    let width = setup.scheme.width();
    let (stored, key) = setup.seal(rows);
    let count = rows.values.len() / rows.dimension;
    let mut sums = Vec::new();
    compact::scan(width, &stored, count, rows.dimension, queries, &mut sums);
    let combined = setup.masks.combine(queries);
    let mut out = vec![0.0; queries.len() / rows.dimension * count];
    let parts =
        combined.chunks_exact(width.degree()).zip(sums.chunks_exact(count * width.word_bytes()));
    for (out, (combined, sums)) in out.chunks_exact_mut(count).zip(parts) {
        compact::unmask(&setup.scheme, &key, combined, sums, out);
    }
    out
}

#[test]
fn scores_stay_inside_the_bounds() {
    for width in WIDTHS {
        for (count, dimension) in
            [(1, 1), (3, 2), (65, 7), (2048, 64), (2500, 130), (300, 512), (5000, 33)]
        {
            let scales = width.unit_scales();
            let (rows, exact) =
                Rows::random_unit(count, dimension, width.plaintext_scale(scales), 1);
            let (queries, exact_queries) = Rows::random_unit(3, dimension, scales.query, 2);
            let setup = setup(width, dimension);
            let got = scores(&setup, &rows, &queries.values);
            let bound = width.error_bound(dimension, scales);
            let mut squares = 0.0;
            for (query, got) in got.chunks_exact(count).enumerate() {
                for (row, got) in got.iter().enumerate() {
                    let truth = dot(
                        &exact[row * dimension..][..dimension],
                        &exact_queries[query * dimension..][..dimension],
                    );
                    let error = (got / scales.vector / scales.query - truth).abs();
                    assert!(
                        error <= bound.tail,
                        "{width:?} d={dimension} row {row}: {error:e} > {:e}",
                        bound.tail
                    );
                    squares += error * error;
                }
            }
            let deviation = (squares / (3 * count) as f64).sqrt();
            assert!(
                deviation < 1.15 * bound.typical || count < 100,
                "{width:?} d={dimension}: {deviation:e} {bound:?}"
            );
            if count >= 2048 && dimension >= 64 {
                assert!(
                    deviation > 0.85 * bound.typical,
                    "the bound is loose: {deviation:e} {bound:?}"
                );
            }
        }
    }
}

#[test]
fn perfect_matches_and_opposites_do_not_wrap() {
    for width in WIDTHS {
        for dimension in [1, 2, 5, 512, 1500, 16384] {
            let scales = width.unit_scales();
            let (row, exact) = Rows::random_unit(1, dimension, width.plaintext_scale(scales), 7);
            let query: Vec<i64> = exact.iter().map(|x| (x * scales.query).round() as i64).collect();
            let opposite: Vec<i64> = row.values.iter().map(|x| -x).collect();
            let rows = Rows { dimension, values: [row.values.clone(), opposite].concat() };
            let setup = setup(width, dimension);
            let got = scores(&setup, &rows, &query);
            let bound = width.error_bound(dimension, scales).tail;
            for (got, truth) in got.iter().zip([1.0, -1.0]) {
                assert!(
                    (got / scales.vector / scales.query - truth).abs() < bound,
                    "{width:?} d={dimension}: {got}"
                );
            }
        }
    }
}

#[test]
fn sign_vectors_decode_exactly() {
    for width in WIDTHS {
        for dimension in [1, 8, 100, 1024, 16384] {
            let scales = width.sign_scales(dimension);
            let bound = width.sign_error_bound(dimension, scales);
            assert!(bound.tail < 1.0, "{width:?} {dimension} {bound:?}");
            let sign = |i: usize, salt: usize| {
                if (i.wrapping_mul(2_654_435_761) ^ salt).count_ones().is_multiple_of(2) {
                    1i64
                } else {
                    -1
                }
            };
            let rows = 70;
            let bits: Vec<i64> = (0..rows * dimension).map(|i| sign(i, 12)).collect();
            let query: Vec<i64> = (0..dimension).map(|i| sign(i, 77)).collect();
            let scaled = Rows {
                dimension,
                values: bits.iter().map(|b| b * width.plaintext_scale(scales) as i64).collect(),
            };
            let setup = setup(width, dimension);
            for (row, got) in scores(&setup, &scaled, &query).iter().enumerate() {
                let truth: i64 = bits[row * dimension..][..dimension]
                    .iter()
                    .zip(&query)
                    .map(|(b, q)| b * q)
                    .sum();
                let decoded = dimension as i64
                    - 2 * ((dimension as f64 - got / scales.vector) / 2.0).round() as i64;
                assert_eq!(decoded, truth, "{width:?} d={dimension} row {row}");
            }
        }
    }
}

#[test]
fn unsealing_returns_the_rows() {
    for width in WIDTHS {
        let scales = width.unit_scales();
        let step = width.plaintext_scale(scales) / scales.vector;
        let (rows, _) = Rows::random_unit(2100, 70, width.plaintext_scale(scales), 9);
        let setup = setup(width, 70);
        let (stored, key) = setup.seal(&rows);
        let plain = compact::unseal(&setup.scheme, &setup.masks, &key, &stored, 2100);
        // Noise up to 29 of one discarded unit, and half a stored step.
        let limit = 29.0 / f64::exp2(f64::from(width.dropped_bits())) + 0.5;
        assert!(
            plain.iter().zip(&rows.values).all(|(got, x)| (got - *x as f64 / step).abs() <= limit)
        );
    }
}

#[test]
fn segments_with_other_nonces_do_not_open() {
    let width = Width::Standard;
    let scales = width.unit_scales();
    let (rows, exact) = Rows::random_unit(100, 64, width.plaintext_scale(scales), 1);
    let setup = setup(width, 64);
    let (stored, _) = setup.seal(&rows);
    let wrong =
        SegmentKey::derive(&setup.scheme, &setup.master, b"collection", SegmentId([6; 16]), 100);
    let plain = compact::unseal(&setup.scheme, &setup.masks, &wrong, &stored, 100);
    let correlation = dot(&plain, &exact) / dot(&plain, &plain).sqrt() / dot(&exact, &exact).sqrt();
    assert!(correlation.abs() < 0.1, "{correlation}");
}
