//! Rows of integers and a reproducible source of them, for the suites beside this folder.
#![allow(dead_code, reason = "each suite uses a part")]

use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::lattice::Plaintext;
use std::ops::Range;

/// An integer matrix.
pub struct Rows {
    pub dimension: usize,
    pub values: Vec<i64>,
}

impl Rows {
    /// Unit vectors from Gaussian coordinates, scaled and rounded, with their exact values beside.
    pub fn random_unit(rows: usize, dimension: usize, scale: f64, seed: u8) -> (Rows, Vec<f64>) {
        let mut stream = Stream::new(&[seed; 32], 99);
        let mut words = vec![0u64; rows * dimension * 4];
        stream.uniform_bits(32, &mut words);
        // Four uniforms a coordinate: near enough to a Gaussian for a direction.
        let raw: Vec<f64> = words
            .as_chunks::<4>()
            .0
            .iter()
            .map(|w| w.iter().sum::<u64>() as f64 / f64::exp2(32.0) - 2.0)
            .collect();
        let mut exact = Vec::with_capacity(raw.len());
        for row in raw.chunks_exact(dimension) {
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            exact.extend(row.iter().map(|x| x / norm));
        }
        let values = exact.iter().map(|x| (x * scale).round() as i64).collect();
        (Rows { dimension, values }, exact)
    }

    pub fn row(&self, row: usize) -> &[i64] {
        &self.values[row * self.dimension..][..self.dimension]
    }
}

impl Plaintext for Rows {
    fn rows(&self) -> usize {
        self.values.len() / self.dimension
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn content(&self) -> &[u8] {
        bytemuck::cast_slice(&self.values)
    }

    fn fill(&self, row: usize, dims: Range<usize>, out: &mut [i64]) {
        out.copy_from_slice(&self.row(row)[dims]);
    }
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
