//! Count form: one encrypted vector of counts a document, plain weights, four to six bytes a count (`docs/lookup.md`).
//!
//! LWE over `Z[X]/(X^N + 1)` modulo a 50-bit prime q. Counts sit in coefficients; polynomial m of a document is masked by
//! the public a_m times the document's own secret s, and switched down to a power of two before the counts are added:
//!
//! ```text
//! b_m = round(2^W/q · (a_m s + e_m  mod q)) + x_m   mod 2^W
//! ```
//!
//! A weighted sum of coefficients is one number, and its mask is the inner product of s with a vector that depends on the
//! masks and the weights alone: `Σ_i w_i (a s)_i = Σ_j h_j s_j`, `h = a(X) w(1/X)` read backwards. All documents share
//! it, so a server makes this *hint* once, and is left with integer weights times words.

mod hint;
#[cfg(feature = "client")]
mod open;
#[cfg(feature = "client")]
mod seal;

pub use hint::{HINT_BITS, Hint, Masks};
#[cfg(feature = "client")]
pub use open::Opener;
#[cfg(feature = "client")]
pub use seal::seal;

use crate::error::{Error, Result};
use crate::params::{self, ParamId, Security};
use ciphervec_arith::matmul::{self, TILE};
use ciphervec_arith::ntt::NttTable;
use ciphervec_arith::sample::GAUSSIAN_SIGMA;
use rayon::prelude::*;

/// Ring degree N, which is also the number of counts that share one mask.
pub const DEGREE: usize = 2048;
/// Bits of the prime q that security rests on.
pub const MODULUS_BITS: u32 = 50;
/// Bytes of a stored word, least and most.
pub const WORD_BYTES: core::ops::RangeInclusive<usize> = 4..=6;

/// A checked parameter set of the count form with its transform tables. Both sides.
pub struct Histogram {
    word_bytes: usize,
    table: NttTable,
}

impl core::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Histogram({} bytes a word)", self.word_bytes)
    }
}

impl Histogram {
    /// Builds the tables for words of `word_bytes`.
    ///
    /// # Errors
    /// [`Error::Range`] for words of another length, [`Error::Insecure`] if the modulus were too wide for the degree.
    pub fn new(word_bytes: usize) -> Result<Self> {
        if !WORD_BYTES.contains(&word_bytes) {
            let expected = format!("from {} to {}", WORD_BYTES.start(), WORD_BYTES.end());
            let actual = word_bytes.to_string();
            return Err(Error::Range { what: "bytes of a word", expected, actual });
        }
        params::check(DEGREE, MODULUS_BITS, Security::Quantum128)?;
        let primes = ciphervec_arith::ntt_primes(MODULUS_BITS, DEGREE, 1)?;
        Ok(Histogram { word_bytes, table: NttTable::new(DEGREE, primes[0])? })
    }

    /// Bytes of a stored word.
    pub fn word_bytes(&self) -> usize {
        self.word_bytes
    }

    /// W: bits of a stored word.
    pub fn word_bits(&self) -> u32 {
        8 * self.word_bytes as u32
    }

    /// The public name of the parameter set.
    pub fn param_id(&self) -> ParamId {
        ParamId::of(&format!(
            "sealed counts: N={DEGREE} q={} words={} ternary sigma=3.2",
            self.table.modulus().value(),
            self.word_bits()
        ))
    }

    /// Largest magnitude of a weighted sum: below half of 2^W, with room for the noise.
    pub fn capacity(&self) -> f64 {
        0.93 * f64::exp2(f64::from(self.word_bits()) - 1.0)
    }

    /// Bytes of `rows` sealed documents of `dimension` counts.
    pub fn words_len(&self, rows: usize, dimension: usize) -> usize {
        rows * dimension * self.word_bytes
    }

    /// The standard deviation of the noise of one word: the Gaussian one switched down, rounding, and what switching in
    /// doubles adds, at most 2^-4 of a step.
    pub fn word_noise(&self) -> f64 {
        let gaussian = GAUSSIAN_SIGMA * self.switch();
        (gaussian * gaussian + 1.0 / 12.0 + f64::exp2(-8.0)).sqrt()
    }

    /// The standard deviation of the noise of `Σ_i w_i b_i` after its mask is removed, in steps of a word: that of the words
    /// and that of the rounded hint, for weights of Euclidean length `norm`.
    pub fn sum_noise(&self, norm: f64) -> f64 {
        let step = f64::exp2(f64::from(self.word_bits()) - f64::from(HINT_BITS));
        // A ternary coefficient is 1 in mean square two times out of three.
        let hint = step * step / 12.0 * DEGREE as f64 * 2.0 / 3.0;
        ((self.word_noise() * norm).powi(2) + hint).sqrt()
    }

    /// 2^W / q.
    fn switch(&self) -> f64 {
        f64::exp2(f64::from(self.word_bits())) / self.table.modulus().value() as f64
    }

    /// The server's product: `y_v = Σ_i w_i b_i[v] mod 2^W` for every row of `dimension` weights and every document,
    /// output-major, as words of 8 bytes.
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
