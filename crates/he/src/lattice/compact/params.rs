//! Parameters of the compact form: ring and scales of each word width.

use crate::lattice::Scales;
use crate::params::ParamId;

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

    /// Scales for ±1 vectors of `dimension` bits: integer queries, so that the inner product is
    /// exact.
    pub fn sign_scales(self, dimension: usize) -> Scales {
        // 2^45 is more than enough to be exact, and integers of that size are exact in a double
        // too.
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
        rows.saturating_mul(dimension).saturating_mul(self.word_bytes())
    }

    /// The bytes of one query's answer that are about this block.
    pub fn of_block(self, answer: &[u8], block: usize) -> &[u8] {
        let bytes = self.degree() * self.word_bytes();
        let rest = &answer[block * bytes..];
        &rest[..rest.len().min(bytes)]
    }

    fn name(self) -> &'static str {
        match self {
            Width::Standard => "standard",
            Width::Small => "small",
            Width::Wide => "wide",
        }
    }
}
