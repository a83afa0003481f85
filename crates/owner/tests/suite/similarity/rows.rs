//! Rows to compare and what comparing them should give, computed without the crate.

use ciphervec_owner::Metric;
use ciphervec_owner::similarity::additive::{
    EncryptedVectors, GridPrecision, Layout, OwnerScores, Probes, Rerandomization, Scores,
    VectorSpec, Vectors,
};

use super::plain::{Plain, PlainTable};

pub const LAYOUTS: [Layout; 3] = [Layout::Elements, Layout::Lanes, Layout::Horizontal];
pub const METRICS: [Metric; 4] =
    [Metric::Cosine, Metric::InnerProduct, Metric::L2, Metric::Hamming];
pub const PRECISIONS: [GridPrecision; 3] =
    [GridPrecision::Small, GridPrecision::Standard, GridPrecision::High];

/// A generator that needs no seed from outside: splitmix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Roughly normal: the sum of four uniform numbers.
    pub fn normal(&mut self) -> f64 {
        (0..4).map(|_| self.next() as f64 / u64::MAX as f64 - 0.5).sum::<f64>() * 1.732
    }
}

/// Rows of very different norms; signs under hamming; every fifth row a unit vector or its negative.
pub fn rows(metric: Metric, dimension: usize, count: usize, seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    let mut rows = Vec::with_capacity(dimension * count);
    for row in 0..count {
        let norm = 10f64.powi((row as i32 * 7) % 19 - 9);
        for at in 0..dimension {
            let value = random.normal() + 1e-3;
            rows.push(match (metric, row % 5) {
                (Metric::Hamming, _) => value.signum(),
                (_, 4) if at == row % dimension => {
                    if row % 2 == 0 {
                        norm
                    } else {
                        -norm
                    }
                }
                (_, 4) => 0.0,
                _ => norm * value,
            });
        }
    }
    rows
}

/// A sum with its rounding errors carried along.
fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut total, mut lost) = (0.0f64, 0.0f64);
    for value in values {
        let next = total + value;
        lost += if total.abs() >= value.abs() {
            (total - next) + value
        } else {
            (value - next) + total
        };
        total = next;
    }
    total + lost
}

pub fn norm(row: &[f64]) -> f64 {
    sum(row.iter().map(|x| x * x)).sqrt()
}

pub fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let (na, nb) = (norm(a), norm(b));
    if na == 0.0 || nb == 0.0 {
        return 0.0;
    }
    sum(a.iter().zip(b).map(|(x, y)| (x / na) * (y / nb)))
}

pub fn value(metric: Metric, a: &[f64], b: &[f64]) -> f64 {
    match metric {
        Metric::Cosine => cosine(a, b),
        Metric::InnerProduct => sum(a.iter().zip(b).map(|(x, y)| x * y)),
        Metric::L2 => sum(a.iter().zip(b).map(|(x, y)| (x - y) * (x - y))),
        Metric::Hamming => a.iter().zip(b).filter(|(x, y)| x != y).count() as f64,
    }
}

pub fn spec(
    dimension: usize,
    metric: Metric,
    precision: GridPrecision,
    layout: Layout,
) -> VectorSpec {
    VectorSpec::new(dimension as u32, metric, precision, layout).unwrap()
}

pub fn encrypt(spec: &VectorSpec, scheme: &Plain, rows: &[f64]) -> EncryptedVectors<PlainTable> {
    let vectors = Vectors::quantize(spec, rows).unwrap();
    EncryptedVectors::encrypt(spec, scheme, &vectors).unwrap()
}

pub fn score(
    scheme: &Plain,
    gallery: &EncryptedVectors<PlainTable>,
    probes: &[f64],
    rerandomization: Rerandomization,
) -> Scores {
    let probes = Probes::quantize(gallery.spec(), probes).unwrap();
    gallery.score_with(scheme, &probes, rerandomization).unwrap().open(scheme).unwrap()
}
