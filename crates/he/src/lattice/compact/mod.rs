//! Compact form: encrypted vectors, plain queries, four bytes a dimension (`docs/sealed.md`, section 1).
//!
//! LWE over `Z[X]/(X^N + 1)` modulo a power of two. Vector v of a block sits in coefficient v; dimension i is masked by
//! the public polynomial a_i times the block's secret; only the rounded top bits are stored:
//!
//! ```text
//! b_i[v] = round(((a_i · s)[v] + e + round(2^drop Δx x_i)  mod 2^Q) / 2^drop)
//! ```
//!
//! The server's whole work is `Σ_i q_i b_i[v]` with wrapping words.

mod bound;
#[cfg(feature = "client")]
mod masks;
#[cfg(feature = "client")]
mod open;
mod prune;
#[cfg(feature = "client")]
mod seal;
mod serialize;

#[cfg(feature = "client")]
pub use masks::Masks;
#[cfg(feature = "client")]
pub use open::{SegmentKey, unmask, unseal};
pub use prune::{prune, spread, spread_sums};
#[cfg(feature = "client")]
pub use seal::seal;
#[cfg(feature = "hazmat")]
pub use seal::seal_with_key;

use super::Scales;
#[cfg(feature = "client")]
use crate::error::Result;
use crate::params::ParamId;
#[cfg(feature = "client")]
use crate::params::{self, Security};
use ciphervec_arith::matmul;
#[cfg(feature = "client")]
use ciphervec_arith::ntt::NttTable;
#[cfg(feature = "client")]
use ciphervec_arith::rns::RnsPair;

/// Width of a stored word, which sets size and error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Width {
    /// 4 bytes a dimension, score error about 10⁻⁵.
    Standard,
    /// 3 bytes a dimension, score error about 2·10⁻⁴.
    Small,
    /// 8 bytes a dimension, score error about 2·10⁻⁹.
    Wide,
}

impl Width {
    /// Ring degree N, which is also the number of vectors that share one secret.
    pub fn degree(self) -> usize {
        match self {
            Width::Standard | Width::Small => 2048,
            Width::Wide => 4096,
        }
    }

    /// log2 Q of the ciphertext modulus that security rests on.
    pub fn ciphertext_modulus_bits(self) -> u32 {
        match self {
            Width::Standard => 37,
            Width::Small => 32,
            Width::Wide => 64,
        }
    }

    /// Bits that are stored and computed with.
    pub fn word_bits(self) -> u32 {
        match self {
            Width::Standard => 32,
            Width::Small => 24,
            Width::Wide => 64,
        }
    }

    /// Bytes a dimension at rest.
    pub fn word_bytes(self) -> usize {
        self.word_bits() as usize / 8
    }

    /// Low bits rounded away: public post-processing, so security stays that of Q.
    pub fn dropped_bits(self) -> u32 {
        self.ciphertext_modulus_bits() - self.word_bits()
    }

    /// Scales for unit vectors: their product stays a factor 2^0.2 below the wrap-around of a word.
    pub fn unit_scales(self) -> Scales {
        let log_scale = match self {
            Width::Standard => 15.4,
            Width::Small => 11.4,
            Width::Wide => 31.4,
        };
        let scale = f64::exp2(log_scale);
        Scales { vector: scale, query: scale }
    }

    /// Scales for ±1 vectors of `dimension` bits: integer queries, so that the inner product is exact.
    pub fn sign_scales(self, dimension: usize) -> Scales {
        // 2^45 is more than enough to be exact, and integers of that size are exact in a double too.
        let capacity = (0.93 * f64::exp2(f64::from(self.word_bits()) - 1.0)).min(f64::exp2(45.0));
        Scales { vector: (capacity / dimension as f64).floor(), query: 1.0 }
    }

    /// The public name of the parameter set.
    pub fn param_id(self) -> ParamId {
        ParamId::of(&format!(
            "sealed compact {}: N={} Q=2^{} words={} ternary sigma=3.2",
            self.name(),
            self.degree(),
            self.ciphertext_modulus_bits(),
            self.word_bits()
        ))
    }

    /// Bytes of `rows` sealed vectors.
    pub fn words_len(self, rows: usize, dimension: usize) -> usize {
        rows * dimension * self.word_bytes()
    }

    #[cfg(feature = "client")]
    fn primes(self) -> usize {
        if self == Width::Wide { 2 } else { 1 }
    }

    /// What a unit vector is multiplied by before it is sealed: Δx in units of a stored step, 2^drop finer, so that the
    /// rounding of the stored words is the only one.
    pub fn plaintext_scale(self, scales: Scales) -> f64 {
        scales.vector * f64::exp2(f64::from(self.dropped_bits()))
    }

    fn name(self) -> &'static str {
        match self {
            Width::Standard => "standard",
            Width::Small => "small",
            Width::Wide => "wide",
        }
    }
}

/// A checked parameter set of the compact form with its transform tables. A server needs none: it adds words.
#[cfg(feature = "client")]
pub struct Compact {
    width: Width,
    tables: Vec<NttTable>,
    rns: Option<RnsPair>,
}

#[cfg(feature = "client")]
impl Compact {
    /// Builds the tables.
    ///
    /// # Errors
    /// [`crate::Error::Insecure`] if the modulus were too wide for the degree.
    pub fn new(width: Width) -> Result<Self> {
        let degree = width.degree();
        params::check(degree, width.ciphertext_modulus_bits(), Security::Classical128)?;
        // |a · s| < 2^Q · N: below half a 50-bit prime at Q = 37, below half of two of them at Q = 64.
        let primes = ciphervec_arith::ntt_primes(50, degree, width.primes())?;
        let tables = primes
            .iter()
            .map(|&prime| NttTable::new(degree, prime))
            .collect::<core::result::Result<Vec<_>, _>>()?;
        let rns = match tables.as_slice() {
            [first, second] => Some(RnsPair::new(first, second)?),
            _ => None,
        };
        Ok(Compact { width, tables, rns })
    }

    /// The word width.
    pub fn width(&self) -> Width {
        self.width
    }

    /// Blocks that `rows` vectors need.
    pub fn blocks(&self, rows: usize) -> usize {
        rows.div_ceil(self.width.degree())
    }
}

/// The server's product: `y_v = Σ_i q_i b_i[v]` for every query and every row, query-major little-endian words.
///
/// `words` holds `rows` vectors in tile layout ([`matmul`]); queries are `count` rows of `dimension` integers.
pub fn scan(
    width: Width,
    words: &[u8],
    rows: usize,
    dimension: usize,
    queries: &[i64],
    out: &mut Vec<u8>,
) {
    let count = queries.len() / dimension;
    match width {
        Width::Standard | Width::Small => {
            // Queries are below 2^31 at these widths: the bound is checked where they are parsed.
            let narrow: Vec<i32> = queries.iter().map(|&value| value as i32).collect();
            let mut sums = vec![0u32; count * rows];
            match (width, count) {
                (Width::Standard, 1) => {
                    matmul::scan_u32(words, rows, dimension, &narrow, &mut sums)
                }
                (Width::Standard, _) => {
                    matmul::scan_u32_batch(words, rows, dimension, &narrow, &mut sums)
                }
                (_, 1) => matmul::scan_u24(words, rows, dimension, &narrow, &mut sums),
                (_, _) => matmul::scan_u24_batch(words, rows, dimension, &narrow, &mut sums),
            }
            serialize::append_u32(width, &sums, out);
        }
        Width::Wide => {
            let mut sums = vec![0u64; count * rows];
            if count == 1 {
                matmul::scan_u64(words, rows, dimension, queries, &mut sums);
            } else {
                matmul::scan_u64_batch(words, rows, dimension, queries, &mut sums);
            }
            serialize::append_u64(&sums, out);
        }
    }
}
