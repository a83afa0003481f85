//! Parameters of the histogram scheme: ring and noise for a word length.

use crate::error::{Error, Result};
use crate::params::{self, ParamId, Security};
use ciphervec_arith::ntt::NttTable;
use ciphervec_arith::sample::GAUSSIAN_SIGMA;

/// Ring degree N, which is also the number of counts that share one mask.
pub const DEGREE: usize = 2048;
/// Bits of the prime q that security rests on.
pub const MODULUS_BITS: u32 = 50;
/// Bits that are kept of a coefficient of a hint.
pub const HINT_BITS: u32 = 32;
/// Bytes of a stored word, least and most.
pub const WORD_BYTES: core::ops::RangeInclusive<usize> = 4..=6;

/// A checked parameter set of the histogram scheme with its transform tables. Both sides.
pub struct Histogram {
    pub(super) word_bytes: usize,
    pub(super) table: NttTable,
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
    /// [`Error::Range`] for words of another length, [`Error::Insecure`] if the modulus were too
    /// wide for the degree.
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

    /// The standard deviation of the noise of one word: the Gaussian one switched down, rounding,
    /// and what switching in doubles adds, at most 2^-4 of a step.
    pub fn word_noise(&self) -> f64 {
        let gaussian = GAUSSIAN_SIGMA * self.switch();
        (gaussian * gaussian + 1.0 / 12.0 + f64::exp2(-8.0)).sqrt()
    }

    /// The standard deviation of the noise of `Σ_i w_i b_i` after its mask is removed, in steps of
    /// a word: that of the words and that of the rounded hint, for weights of Euclidean length
    /// `norm`.
    pub fn sum_noise(&self, norm: f64) -> f64 {
        let step = f64::exp2(f64::from(self.word_bits()) - f64::from(HINT_BITS));
        // A ternary coefficient is 1 in mean square two times out of three.
        let hint = step * step / 12.0 * DEGREE as f64 * 2.0 / 3.0;
        ((self.word_noise() * norm).powi(2) + hint).sqrt()
    }

    /// The transform modulo q.
    #[doc(hidden)]
    pub fn table(&self) -> &NttTable {
        &self.table
    }

    /// 2^W / q.
    #[doc(hidden)]
    pub fn switch(&self) -> f64 {
        f64::exp2(f64::from(self.word_bits())) / self.table.modulus().value() as f64
    }
}
