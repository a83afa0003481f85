//! Scan, histogram scheme: weighted sums of stored words. Server only.

use super::Histogram;
use ciphervec_arith::matmul::{self, TILE};
use ciphervec_arith::parallel::*;

impl Histogram {
    /// The server's product: `y_v = Σ_i w_i b_i[v] mod 2^W` for every row of `dimension` weights
    /// and every document, output-major, as words of 8 bytes.
    ///
    /// `words` holds `rows` documents in tile layout ([`matmul`]) of words of [`Self::word_bytes`].
    ///
    /// # Panics
    /// When `words` is not [`Self::words_len`] bytes, or the weights are no whole number of rows.
    pub fn scan(&self, words: &[u8], rows: usize, dimension: usize, weights: &[i64]) -> Vec<u64> {
        assert_eq!(words.len(), self.words_len(rows, dimension), "bytes of documents");
        assert!(weights.len().is_multiple_of(dimension.max(1)), "rows of weights");
        let outputs = weights.len() / dimension.max(1);
        let mask = u64::MAX >> (64 - self.word_bits());
        let mut sums = vec![0u64; outputs * rows];
        // A tile at a time, so that the widened words never leave the cache.
        let tiles: Vec<Vec<u64>> = words
            .par_chunks(TILE * dimension * self.word_bytes)
            .map(|tile| {
                let wide = self.widen(tile);
                let height = tile.len() / (dimension * self.word_bytes);
                let mut part = vec![0u64; outputs * height];
                if outputs == 1 {
                    matmul::scan_u64(&wide, height, dimension, weights, &mut part);
                } else {
                    matmul::scan_u64_batch(&wide, height, dimension, weights, &mut part);
                }
                part
            })
            .collect();
        for (tile, part) in tiles.iter().enumerate() {
            let height = part.len() / outputs.max(1);
            for (output, values) in part.chunks_exact(height.max(1)).enumerate() {
                let to = &mut sums[output * rows + tile * TILE..][..height];
                to.iter_mut().zip(values).for_each(|(to, value)| *to = value & mask);
            }
        }
        sums
    }

    /// Stored words as words of 8 bytes.
    fn widen(&self, words: &[u8]) -> Vec<u8> {
        fn each<const WIDTH: usize>(words: &[u8], out: &mut [u8]) {
            let out = out.as_chunks_mut::<8>().0;
            for (to, from) in out.iter_mut().zip(words.as_chunks::<WIDTH>().0) {
                let mut wide = [0; 8];
                wide[..WIDTH].copy_from_slice(from);
                *to = wide;
            }
        }
        let mut out = vec![0; words.len() / self.word_bytes * 8];
        match self.word_bytes {
            4 => each::<4>(words, &mut out),
            5 => each::<5>(words, &mut out),
            _ => each::<6>(words, &mut out),
        }
        out
    }
}
