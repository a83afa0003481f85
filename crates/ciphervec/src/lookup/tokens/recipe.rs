//! A strategy made concrete for a table's shape: parameters, keys, and how an index is written.
//! Public numbers only.

use super::basis::Basis;
use super::bound::{self, Errors};
use super::candidate::Candidate;
use super::compact::{Compact, CompactPlan};
use super::design::{Design, Shape, design};
use super::parameters;
use crate::error::{Error, Result};
use crate::lookup::strategy::Strategy;
use crate::lookup::transport::Transport;
use ciphervec_he::ckks::{Complex, KeyPlan, Params};
use std::sync::Arc;

/// A strategy, made concrete for a shape.
#[derive(Clone, Debug)]
pub struct Recipe {
    strategy: Strategy,
    shape: Shape,
    bases: Vec<Basis>,
    folded: bool,
    wide: bool,
    params: Arc<Params>,
    /// Of compact transport.
    compact: Option<Arc<Compact>>,
}

impl Recipe {
    /// The recipe with the smallest secure ring that reaches the precision.
    ///
    /// # Errors
    /// [`Error::Range`] for sizes out of bounds or a precision that no ring reaches;
    /// [`Error::Choice`] for [`Strategy::Histogram`], which does not look up index by index.
    pub fn new(strategy: Strategy, shape: Shape) -> Result<Self> {
        let (bases, folded) = design(strategy, Transport::Standard, &shape)?;
        let design = |wide| Design { shape, bases: &bases, folded, wide };
        // One prime for the sums where its room is enough, two where precision asks for them.
        let (params, wide) = match parameters::choose(&design(false)) {
            Ok(params) => (params, false),
            Err(_) => (parameters::choose(&design(true))?, true),
        };
        Ok(Recipe { strategy, shape, bases, folded, wide, params, compact: None })
    }

    /// The recipe of compact transport, whose parameters have the levels of a bootstrapping above
    /// those that the functions take.
    ///
    /// # Errors
    /// As [`Self::new`]; [`Error::Choice`] for strategies that do not begin with roots of unity.
    pub fn compact(strategy: Strategy, shape: Shape) -> Result<Self> {
        let (bases, folded) = design(strategy, Transport::Compact, &shape)?;
        let plan =
            CompactPlan::new(strategy, &Design { shape, bases: &bases, folded, wide: true })?;
        Self::planned(strategy, shape, (bases, folded), Compact::new(&plan)?)
    }

    fn planned(
        strategy: Strategy,
        shape: Shape,
        (bases, folded): (Vec<Basis>, bool),
        compact: Compact,
    ) -> Result<Self> {
        let params = compact.exponential().params().clone();
        let compact = Some(Arc::new(compact));
        Ok(Recipe { strategy, shape, bases, folded, wide: true, params, compact })
    }

    /// The same over a small ring that nothing vouches for, for tests.
    ///
    /// # Errors
    /// As [`Self::compact`].
    #[cfg(feature = "hazmat")]
    pub fn insecure_compact(strategy: Strategy, shape: Shape, log_degree: u32) -> Result<Self> {
        let (bases, folded) = design(strategy, Transport::Compact, &shape)?;
        let design = Design { shape, bases: &bases, folded, wide: true };
        let plan = CompactPlan::insecure(strategy, &design, log_degree)?;
        Self::planned(strategy, shape, (bases, folded), Compact::insecure_new(&plan)?)
    }

    /// The recipe over a small ring that nothing vouches for, for tests.
    ///
    /// # Errors
    /// As [`Self::new`].
    #[cfg(feature = "hazmat")]
    pub fn insecure_new(strategy: Strategy, shape: Shape, log_degree: u32) -> Result<Self> {
        let (bases, folded) = design(strategy, Transport::Standard, &shape)?;
        let design = Design { shape, bases: &bases, folded, wide: false };
        let params = parameters::insecure(&design, log_degree)?;
        Ok(Recipe { strategy, shape, bases, folded, wide: false, params, compact: None })
    }

    /// The strategy.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// What it was made for.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The parameters: the ring, and all the levels that the server needs.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// The keys that [`embed`](crate::lookup::embed()) uses.
    pub fn key_plan(&self) -> KeyPlan {
        let design = self.design();
        let mut plan = KeyPlan::new();
        if design.relinearises() {
            plan = plan.relinearise();
        }
        if design.conjugates() {
            plan = plan.conjugate();
        }
        match self.compact {
            Some(_) => plan.at_level(self.top_level()),
            None => plan,
        }
    }

    /// How indices travel.
    pub fn transport(&self) -> Transport {
        if self.compact.is_some() { Transport::Compact } else { Transport::Standard }
    }

    #[doc(hidden)]
    pub fn compact_layout(&self) -> Option<&Arc<Compact>> {
        self.compact.as_ref()
    }

    /// The level at which the server begins to make functions: that of fresh ciphertexts, or of the
    /// roots that it made.
    pub fn top_level(&self) -> usize {
        self.compact
            .as_ref()
            .map_or(self.params.max_level(), |compact| compact.exponential().level())
    }

    /// Writes an index for compact transport: a fraction of a turn for each of its numbers.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_turns(&self, index: usize, out: &mut [f64]) -> Result<()> {
        self.check_index(index, out.len())?;
        let digits = self.bases.iter().zip(self.digits(index));
        out.iter_mut().zip(digits).for_each(|(out, (basis, digit))| *out = basis.turns(digit));
        Ok(())
    }

    /// Ciphertexts that a batch of indices takes: numbers that an index is written as.
    pub fn entries(&self) -> usize {
        self.bases.iter().map(Basis::entries).sum()
    }

    /// Writes an index: a slot of each of the ciphertexts.
    ///
    /// # Errors
    /// [`Error::Range`] for an index that is not below the number of rows, or another number of
    /// entries.
    pub fn write(&self, index: usize, out: &mut [Complex]) -> Result<()> {
        self.check_index(index, out.len())?;
        let mut rest = out;
        for (basis, digit) in self.bases.iter().zip(self.digits(index)) {
            let (entries, after) = rest.split_at_mut(basis.entries());
            basis.write(digit, entries);
            rest = after;
        }
        Ok(())
    }

    fn check_index(&self, index: usize, entries: usize) -> Result<()> {
        let range = |what, expected, actual: usize| Error::Range {
            what,
            expected,
            actual: actual.to_string(),
        };
        if index >= self.shape.rows {
            return Err(range("an index", format!("below {}", self.shape.rows), index));
        }
        if entries != self.entries() {
            let expected = self.entries().to_string();
            return Err(range("the entries of an index", expected, entries));
        }
        Ok(())
    }

    /// Slots of a ciphertext: indices that are looked up at once.
    pub fn batch(&self) -> usize {
        self.params.max_slots()
    }

    /// Levels between a fresh query and its result.
    pub fn depth(&self) -> usize {
        self.top_level() - self.shape.levels
    }

    /// Whether the digits' functions meet the table before each other.
    pub fn folded(&self) -> bool {
        self.folded
    }

    pub(super) fn bases(&self) -> &[Basis] {
        &self.bases
    }

    #[doc(hidden)]
    pub fn design(&self) -> Design<'_> {
        let Recipe { shape, bases, folded, wide, .. } = self;
        Design { shape: *shape, bases, folded: *folded, wide: *wide }
    }

    /// The digits of an index, the most significant first.
    pub(super) fn digits(&self, index: usize) -> Vec<usize> {
        let mut rest = index;
        let mut digits: Vec<usize> = Vec::with_capacity(self.bases.len());
        for basis in self.bases.iter().rev() {
            digits.push(rest % basis.size());
            rest /= basis.size();
        }
        digits.reverse();
        digits
    }

    /// The root mean square error to expect of a looked-up number, over the root mean square of the
    /// table's numbers.
    pub fn relative_error(&self) -> f64 {
        self.with_errors(|errors, candidate| errors.relative(candidate))
    }

    pub(super) fn with_errors<T>(&self, of: impl FnOnce(&Errors<'_>, &Candidate) -> T) -> T {
        let (design, params) = (self.design(), self.params());
        let errors = Errors::new(&design, params.spec().log_degree);
        match &self.compact {
            Some(compact) => {
                let (spec, deviation) = compact.estimate();
                of(&errors.with_input(deviation), &Candidate { spec, last_bits: None })
            }
            None => of(&errors, &Candidate { spec: *params.spec(), last_bits: params.last_bits() }),
        }
    }

    /// ‖M‖₂/√d of tables of which rows are summed.
    pub(super) fn spectral(&self, tables: &[&[f64]]) -> f64 {
        let columns = self.shape.columns;
        let norm = |table: &&[f64]| bound::spectral_norm(table, columns).powi(2);
        (tables.iter().map(norm).sum::<f64>() / columns as f64).sqrt()
    }

    /// What the root mean square error of looked-up rows stays below: the shape of Theorem 5.1,
    /// with the spectral norms of the `tables` themselves in place of C_T (√d + √p). Tables are
    /// row-major, one row of numbers for each index.
    pub fn bound(&self, tables: &[&[f64]]) -> f64 {
        bound::MARGIN * self.relative_error() * self.spectral(tables)
    }
}
