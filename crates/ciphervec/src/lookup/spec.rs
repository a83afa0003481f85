//! The public description of a lookup: what a client knows of a server's tables.

use super::histogram::scales::HistogramScales;
use super::options::{Options, Pooling};
use super::strategy::Strategy;
use super::table::{Table, TableDigest};
use super::tokens::design::Shape;
use super::tokens::recipe::Recipe;
use super::tokens::weights::Weights;
use super::transport::Transport;
use crate::error::{Error, Result};
use ciphervec_he::lattice::histogram::Histogram;
use ciphervec_he::params::ParamId;

/// Most rows of a table whose index is written as one number: beyond, nothing is precise enough.
const MAX_NUMBER_ROWS: usize = 1 << 12;

/// What rounding may take of a bound that an earlier release wrote, whose answers were whole.
const OF_EARLIER_BOUND: f64 = 1.0 / 32.0;

/// The public description of a table that is looked up in: shape, digest, strategy and scales. A
/// client needs nothing else.
#[derive(Clone, PartialEq, Debug)]
pub struct Spec {
    pub(super) shape: (usize, usize, usize),
    pub(super) zero_row: bool,
    pub(super) digest: TableDigest,
    pub(super) options: Options,
    /// In strategy `histogram`.
    pub(super) scales: Option<HistogramScales>,
    pub(super) bound: f64,
    /// What rounding takes from a number of an answer at the most: in strategies that look up token by
    /// token, and unless an earlier release wrote the description.
    pub(super) rounding: Option<f64>,
    #[doc(hidden)]
    pub params: ParamId,
}

/// What either half computes with.
pub enum Instance {
    Histogram(Box<Histogram>),
    Tokens(Recipe),
}

impl Instance {
    /// For tables of `shape`.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::Lookup`] for options that do not go together or with the shape.
    pub fn new(options: &Options, (_, rows, columns): (usize, usize, usize)) -> Result<Self> {
        options.check()?;
        if options.strategy == Strategy::Histogram {
            return Ok(Instance::Histogram(Box::new(Histogram::new(options.word_bytes)?)));
        }
        let one_number = matches!(options.strategy, Strategy::Ive | Strategy::Indicator);
        if one_number && rows > MAX_NUMBER_ROWS {
            return Err(Error::Range {
                what: "the rows of a table, looked up by one number,",
                expected: format!("at most {MAX_NUMBER_ROWS}"),
                actual: rows.to_string(),
            });
        }
        let Options { strategy, precision_bits, levels, transport, .. } = *options;
        let shape = Shape { rows, columns, precision_bits, levels };
        Ok(Instance::Tokens(match transport {
            Transport::Standard => Recipe::new(strategy, shape)?,
            Transport::Compact => Recipe::compact(strategy, shape)?,
        }))
    }

    pub fn param_id(&self) -> ParamId {
        match self {
            Instance::Histogram(scheme) => scheme.param_id(),
            Instance::Tokens(recipe) => recipe.params().param_id(),
        }
    }
}

impl Spec {
    /// The description of `table`, and what it is looked up in with.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::Lookup`] for options or numbers that do not go together.
    pub(super) fn new(table: &Table, options: Options) -> Result<(Self, Instance)> {
        let shape = (table.tables(), table.rows(), table.columns());
        let instance = Instance::new(&options, shape)?;
        Ok((Self::of(table, options, &instance)?, instance))
    }

    /// The same of an instance that is there.
    #[doc(hidden)]
    pub fn of(table: &Table, options: Options, instance: &Instance) -> Result<Self> {
        let shape = (table.tables(), table.rows(), table.columns());
        let (scales, bound, rounding) = match instance {
            Instance::Histogram(scheme) => {
                let scales = HistogramScales::new(scheme, table, options.pooling, options.limit)?;
                (Some(scales), scales.bound, None)
            }
            Instance::Tokens(recipe) => {
                let tables: Vec<&[f64]> = (0..shape.0).map(|at| table.table(at)).collect();
                let rounding = recipe.answer_rounding(&tables)?;
                let weights = Weights::new(recipe, &tables)?;
                let before = recipe.number_bound(&tables, &weights);
                let bound = longest(&options) * (before + rounding);
                (None, bound, Some(rounding))
            }
        };
        let (zero_row, digest, params) =
            (table.has_zero_row(), table.digest(), instance.param_id());
        Ok(Spec { shape, zero_row, digest, options, scales, bound, rounding, params })
    }

    /// The same with other promises, which nothing vouches for.
    #[cfg(feature = "hazmat")]
    pub fn insecure_promise(self, rounding: Option<f64>, bound: f64) -> Self {
        Spec { rounding, bound, ..self }
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

    /// In strategy `histogram`.
    #[doc(hidden)]
    pub fn scales(&self) -> Option<&HistogramScales> {
        self.scales.as_ref()
    }

    /// The parameters of what it is looked up with.
    #[doc(hidden)]
    pub fn param_id(&self) -> ParamId {
        self.params
    }

    /// Rows that an index may name; [`PADDING`](super::PADDING) names none of them.
    pub fn choices(&self) -> usize {
        self.rows() - usize::from(self.zero_row)
    }

    /// The row that stands for padding, and for the slots of a batch that no token is in: a sum of
    /// functions of what is no index may be anything, where the modulus has room for rows.
    #[doc(hidden)]
    pub fn padding_row(&self) -> usize {
        if self.zero_row { self.rows() - 1 } else { 0 }
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

    /// No number of an answer is off by more, but with probability 2^-64: for a strategy that looks
    /// up token by token what its ciphertexts are off by and what their rounding takes
    /// (`docs/lookup.md`, sections "Errors" and "Answers"), for every token where rows are summed.
    pub fn error_bound(&self) -> f64 {
        self.bound
    }

    /// What rounding takes from a number of an answer at the most, in strategies that look up token by
    /// token. A bound of an earlier release has a margin for estimates, of which it is a small part.
    pub fn rounding(&self) -> f64 {
        self.rounding.unwrap_or(OF_EARLIER_BOUND * self.bound / longest(&self.options))
    }

    /// The strategy.
    pub fn strategy(&self) -> Strategy {
        self.options.strategy
    }

    /// How encrypted indices travel.
    pub fn transport(&self) -> Transport {
        self.options.transport
    }

    /// Counts of a document.
    #[doc(hidden)]
    pub fn dimension(&self) -> usize {
        self.tables() * self.rows()
    }
}

/// How many tokens' errors a number may have.
fn longest(options: &Options) -> f64 {
    if options.pooling == Pooling::Sum { options.limit as f64 } else { 1.0 }
}
