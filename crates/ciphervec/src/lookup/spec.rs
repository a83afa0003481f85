//! What both halves agree on. A table and a choice of strategy enter at the server; a public description leaves for clients.

use super::histogram::Scales;
use super::table::{Table, TableDigest};
use crate::error::{Error, Result};
use ciphervec_he::params::ParamId;
use ciphervec_he::sealed::counts::Counts;

/// What becomes of the looked-up rows of a document.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Pooling {
    /// Every token's own.
    #[default]
    None = 0,
    /// Their sum.
    Sum = 1,
    /// Their mean; zero for a document without tokens.
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
    /// What becomes of a document's rows.
    pub pooling: Pooling,
    /// Most tokens of a document.
    pub limit: usize,
    /// Bytes of an encrypted count, in strategy `histogram`: 4 to 6.
    pub word_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { pooling: Pooling::Mean, limit: 128, word_bytes: 5 }
    }
}

/// The index of a token that stands for nothing: it adds zero to whatever its document sums up to.
pub const PADDING: i64 = -1;
/// Most tokens that a document may be declared to have.
pub const MAX_LIMIT: usize = 1 << 20;

/// The public description of a table that is looked up in: shape, digest, strategy and scales. A client needs nothing else.
#[derive(Clone, PartialEq, Debug)]
pub struct Spec {
    pub(super) shape: (usize, usize, usize),
    pub(super) zero_row: bool,
    pub(super) digest: TableDigest,
    pub(super) options: Options,
    pub(super) scales: Scales,
    pub(super) params: ParamId,
}

impl Spec {
    /// The description of `table`, and the scheme it is looked up in with.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::Lookup`] for options or numbers that do not go together.
    pub(super) fn new(table: &Table, options: Options) -> Result<(Self, Counts)> {
        options.check()?;
        let scheme = Counts::new(options.word_bytes)?;
        let scales = Scales::new(&scheme, table, options.pooling, options.limit)?;
        let spec = Spec {
            shape: (table.tables(), table.rows(), table.columns()),
            zero_row: table.has_zero_row(),
            digest: table.digest(),
            options,
            scales,
            params: scheme.param_id(),
        };
        Ok((spec, scheme))
    }

    /// ℓ: tables that are summed, and indices a token.
    pub fn tables(&self) -> usize {
        self.shape.0
    }

    /// p: rows of a table, with that of zeros if there is one.
    pub fn rows(&self) -> usize {
        self.shape.1
    }

    /// d: numbers of what is looked up.
    pub fn columns(&self) -> usize {
        self.shape.2
    }

    /// Rows that an index may name; [`PADDING`] names none of them.
    pub fn choices(&self) -> usize {
        self.rows() - usize::from(self.zero_row)
    }

    /// What becomes of a document's rows.
    pub fn pooling(&self) -> Pooling {
        self.options.pooling
    }

    /// Most tokens of a document.
    pub fn limit(&self) -> usize {
        self.options.limit
    }

    /// The options it was set up with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The name of the table.
    pub fn digest(&self) -> &TableDigest {
        &self.digest
    }

    /// No number of an answer is off by more, but with probability 2^-64.
    pub fn error_bound(&self) -> f64 {
        self.scales.bound
    }

    /// Counts of a document.
    pub(super) fn dimension(&self) -> usize {
        self.tables() * self.rows()
    }

    /// The name of everything in this description: queries and answers carry it.
    pub fn id(&self) -> [u8; 16] {
        let digest = blake3::derive_key("ciphervec v1 lookup spec", &self.to_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        id
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
        if self.pooling == Pooling::None {
            return Err(Error::Lookup {
                operation: "setup",
                detail: "strategy histogram gives sums and means of documents; take pooling sum or mean, or a strategy \
                         that looks up token by token"
                    .into(),
            });
        }
        Ok(())
    }
}

/// The row that an index names; `None` for padding.
#[cfg(feature = "client")]
pub(super) fn row_of(index: i64) -> Option<usize> {
    (index != PADDING).then(|| usize::try_from(index).ok()).flatten()
}
