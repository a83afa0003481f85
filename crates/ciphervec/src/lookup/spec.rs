//! What both halves agree on. A table and a choice of strategy enter at the server; a public description leaves for clients.

use super::histogram::Scales;
use super::recipe::{Recipe, Shape};
use super::strategy::Strategy;
use super::table::{Table, TableDigest};
use crate::error::{Error, Result};
use ciphervec_he::lattice::histogram::Histogram;
use ciphervec_he::params::ParamId;

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
    /// b, in the other strategies: the root-mean-square error of a looked-up row is 2^-b of the rows' root mean square.
    pub precision_bits: u32,
    /// Levels that looked-up rows have left for more work on the server, in the other strategies.
    pub levels: usize,
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
        }
    }
}

/// The index of a token that stands for nothing: it adds zero to whatever its document sums up to.
pub const PADDING: i64 = -1;
/// A Gaussian exceeds this many standard deviations with probability below 2^-64.
pub(super) const TAIL_DEVIATIONS: f64 = 9.5;
/// Most tokens that a document may be declared to have.
pub const MAX_LIMIT: usize = 1 << 20;

/// Most rows of a table whose index is written as one number: beyond, nothing is precise enough.
const MAX_NUMBER_ROWS: usize = 1 << 12;

/// The public description of a table that is looked up in: shape, digest, strategy and scales. A client needs nothing else.
#[derive(Clone, PartialEq, Debug)]
pub struct Spec {
    pub(super) shape: (usize, usize, usize),
    pub(super) zero_row: bool,
    pub(super) digest: TableDigest,
    pub(super) options: Options,
    /// In strategy `histogram`.
    pub(super) scales: Option<Scales>,
    pub(super) bound: f64,
    pub(super) params: ParamId,
}

/// What either half computes with.
pub(super) enum Method {
    Histogram(Box<Histogram>),
    Tokens(Recipe),
}

impl Method {
    /// For tables of `shape`.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::Lookup`] for options that do not go together or with the shape.
    pub fn new(options: &Options, (_, rows, columns): (usize, usize, usize)) -> Result<Self> {
        options.check()?;
        if options.strategy == Strategy::Histogram {
            return Ok(Method::Histogram(Box::new(Histogram::new(options.word_bytes)?)));
        }
        let one_number = matches!(options.strategy, Strategy::Ive | Strategy::Indicator);
        if one_number && rows > MAX_NUMBER_ROWS {
            return Err(Error::Range {
                what: "the rows of a table, looked up by one number,",
                expected: format!("at most {MAX_NUMBER_ROWS}"),
                actual: rows.to_string(),
            });
        }
        let Options { precision_bits, levels, .. } = *options;
        let shape = Shape { rows, columns, precision_bits, levels };
        Ok(Method::Tokens(Recipe::new(options.strategy, shape)?))
    }

    pub fn param_id(&self) -> ParamId {
        match self {
            Method::Histogram(scheme) => scheme.param_id(),
            Method::Tokens(recipe) => recipe.params().param_id(),
        }
    }
}

impl Spec {
    /// The description of `table`, and what it is looked up in with.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::Lookup`] for options or numbers that do not go together.
    pub(super) fn new(table: &Table, options: Options) -> Result<(Self, Method)> {
        let shape = (table.tables(), table.rows(), table.columns());
        let method = Method::new(&options, shape)?;
        let (scales, bound) = match &method {
            Method::Histogram(scheme) => {
                let scales = Scales::new(scheme, table, options.pooling, options.limit)?;
                (Some(scales), scales.bound)
            }
            Method::Tokens(recipe) => {
                let tables: Vec<&[f64]> = (0..shape.0).map(|at| table.table(at)).collect();
                let longest = if options.pooling == Pooling::Sum { options.limit } else { 1 };
                let bound = TAIL_DEVIATIONS * recipe.bound(&tables) * longest as f64;
                // A table of zeros is off by nothing that this is a part of.
                (None, bound.max(f64::MIN_POSITIVE))
            }
        };
        let (zero_row, digest, params) = (table.has_zero_row(), table.digest(), method.param_id());
        Ok((Spec { shape, zero_row, digest, options, scales, bound, params }, method))
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

    /// No number of an answer is off by more, but with probability 2^-64: for a strategy that looks up token by token
    /// nine and a half times the root mean square of Theorem 5.1, and that for every token where rows are summed.
    pub fn error_bound(&self) -> f64 {
        self.bound
    }

    /// The strategy.
    pub fn strategy(&self) -> Strategy {
        self.options.strategy
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
        let alone = self.strategy == Strategy::Histogram;
        let refuse = |detail: &str| Error::Lookup { operation: "setup", detail: detail.into() };
        if alone && self.pooling == Pooling::None {
            return Err(refuse(
                "strategy histogram gives sums and means of documents; take pooling sum or mean, or a strategy that looks up \
                 token by token",
            ));
        }
        if alone && self.levels > 0 {
            return Err(refuse(
                "sums by strategy histogram are decrypted next; take a strategy that looks up token by token to go on with",
            ));
        }
        Ok(())
    }
}

/// The row that an index names; `None` for padding.
#[cfg(feature = "client")]
pub(super) fn row_of(index: i64) -> Option<usize> {
    (index != PADDING).then(|| usize::try_from(index).ok()).flatten()
}
