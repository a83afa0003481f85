//! Options of a lookup, checked and public: strategy, pooling, longest document, precision and
//! transport.

use super::strategy::Strategy;
use super::transport::Transport;
use crate::error::{Error, Result};

/// The index of a token that stands for nothing: it adds zero to whatever its document sums up to.
pub const PADDING: i64 = -1;
/// Most tokens that a document may be declared to have.
pub const MAX_LIMIT: usize = 1 << 20;

/// What becomes of the looked-up rows of a document.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Pooling {
    /// Every token's own.
    #[default]
    None = 0,
    /// Their sum.
    Sum = 1,
    /// Their mean, without padding; zero for a document without tokens.
    Mean = 2,
}

impl Pooling {
    const ALL: [Pooling; 3] = [Pooling::None, Pooling::Sum, Pooling::Mean];

    /// As a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Pooling::None => "none",
            Pooling::Sum => "sum",
            Pooling::Mean => "mean",
        }
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        Pooling::ALL.into_iter().find(|one| *one as u8 == byte)
    }
}

impl core::str::FromStr for Pooling {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Pooling::ALL.into_iter().find(|one| one.as_str() == name);
        found.ok_or_else(|| Error::choice("pooling", "none, sum or mean", name))
    }
}

/// How a table is to be looked up in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// How indices are encrypted and what the server makes of them.
    pub strategy: Strategy,
    /// What becomes of a document's rows.
    pub pooling: Pooling,
    /// Most tokens of a document.
    pub limit: usize,
    /// Bytes of an encrypted count, in strategy `histogram`: 4 to 6.
    pub word_bytes: usize,
    /// b, in the other strategies: the root-mean-square error of a looked-up row is 2^-b of the
    /// rows' root mean square.
    pub precision_bits: u32,
    /// Levels that looked-up rows have left for more work on the server, in the other strategies.
    pub levels: usize,
    /// How encrypted indices travel, in strategies `ive` and `ive_digits`.
    pub transport: Transport,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            strategy: Strategy::Histogram,
            pooling: Pooling::Mean,
            limit: 128,
            word_bytes: 5,
            precision_bits: 14,
            levels: 0,
            transport: Transport::Standard,
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<()> {
        if !(1..=MAX_LIMIT).contains(&self.limit) {
            return Err(Error::Range {
                what: "the most tokens of a document",
                expected: format!("from 1 to {MAX_LIMIT}"),
                actual: self.limit.to_string(),
            });
        }
        let alone = self.strategy == Strategy::Histogram;
        let refuse = |detail: &str| Error::Lookup { operation: "setup", detail: detail.into() };
        if alone && self.pooling == Pooling::None {
            return Err(refuse(
                "strategy histogram gives sums and means of documents; take pooling sum or mean, \
                or a strategy that looks up \
                 token by token",
            ));
        }
        if alone && self.levels > 0 {
            return Err(refuse(
                "sums by strategy histogram are decrypted next; take a strategy that looks up \
                token by token to go on with",
            ));
        }
        let compact = self.transport == Transport::Compact;
        if compact && !matches!(self.strategy, Strategy::Ive | Strategy::IveDigits) {
            return Err(refuse(&format!(
                "transport compact sends an index as roots of unity, which strategy {} does not \
                 look up by; take strategy ive or ive_digits, or transport standard",
                self.strategy
            )));
        }
        Ok(())
    }
}
