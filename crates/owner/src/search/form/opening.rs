//! What one segment's part of an answer says of its rows, in terms that are the same in every form. Key holder only.

use crate::error::Result;
use crate::search::root_key::SegmentRootKey;
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::wire::{Kind, Reader};
use std::any::Any;
use std::ops::Range;
use std::sync::OnceLock;

/// What one answer says of some rows of a segment, as far as it is known without looking closer.
pub(in crate::search) struct Estimates<'a> {
    /// The first of these rows.
    pub first: usize,
    /// The cosine of every row.
    pub cosines: &'a [f64],
    /// All of them lie between these two, which may be infinite.
    pub extent: (f64, f64),
    /// Where these carry noise that can be taken off: what [`Opening::settle`] takes it off, a number a row.
    pub sums: &'a [i64],
    /// No estimate is further than this from what settling gives.
    pub slack: f64,
    /// No row has a larger cosine, if the segment can say.
    pub largest: Option<f64>,
}

impl<'a> Estimates<'a> {
    /// Cosines of all rows, which stay as they are.
    pub fn settled(cosines: &'a [f64]) -> Self {
        let extent = (f64::NEG_INFINITY, f64::INFINITY);
        Estimates { first: 0, cosines, extent, sums: &[], slack: 0.0, largest: None }
    }
}

/// An estimate to be settled.
#[derive(Clone, Copy)]
pub(in crate::search) struct RowSum {
    pub query: usize,
    pub row: u32,
    pub sum: i64,
}

/// A cosine without noise: an integer over what one stands for.
#[derive(Clone, Copy)]
pub(in crate::search) struct ExactCosine {
    pub integer: i64,
    pub cosine: f64,
}

/// A part of one segment's answers: those of some queries about all of its rows, or of one about the rows of some blocks.
pub(in crate::search) struct AnswerPart<'a> {
    pub queries: Range<usize>,
    pub rows: Range<usize>,
    pub bytes: &'a [u8],
    /// Whether it came of a fold of clusters.
    pub folded: bool,
}

impl AnswerPart<'_> {
    /// What there is of the answer to one of the queries.
    pub fn answer(&self, query: usize) -> &[u8] {
        let length = self.bytes.len() / self.queries.len();
        &self.bytes[(query - self.queries.start) * length..][..length]
    }
}

/// Blocks that the answer to one query is made of: all of these sizes, but for the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::search) struct AnswerBlocks {
    pub rows: usize,
    pub bytes: usize,
}

/// Opens one answer, segment by segment.
pub(in crate::search) trait Opening: Send {
    /// Gives `visit` the number of each query with its estimates of the rows, once or in several pieces, one after the other.
    ///
    /// # Errors
    /// Damaged answers, those that the segment's check refuses ([`crate::error::Error::Tampered`]), and those of `visit`.
    fn estimate(
        &self,
        segment: &OpenedSegment<'_>,
        part: &AnswerPart<'_>,
        visit: &mut dyn FnMut(usize, &Estimates<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Takes the noise off some estimates, where there is any that can be taken off.
    ///
    /// # Errors
    /// [`crate::error::Error::Tampered`] if something else is left than there can be.
    fn settle(&self, _segment: &OpenedSegment<'_>, _sums: &[RowSum]) -> Result<Vec<ExactCosine>> {
        Ok(Vec::new())
    }
}

/// A segment whose answers are opened.
pub(in crate::search) struct OpenedSegment<'a> {
    pub id: SegmentId,
    pub rows: usize,
    pub level: u8,
    pub root: &'a SegmentRootKey,
    /// What its sidecar has for the form.
    pub witness: &'a [u8],
    /// Its secrets, once a query has needed them. Wiped on drop.
    pub secrets: &'a OnceLock<Kept>,
    /// Whether secrets are kept, and kept ones used: of a large index they take more room than an answer may.
    pub keep: bool,
}

/// Secrets of a segment, kept with it or derived for this one use.
pub(in crate::search) enum Secrets<'a, T> {
    Kept(&'a T),
    Derived(T),
}

impl<T> std::ops::Deref for Secrets<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Secrets::Kept(secrets) => secrets,
            Secrets::Derived(secrets) => secrets,
        }
    }
}

impl<'a> OpenedSegment<'a> {
    /// The segment's secrets, derived at the first query, or at each where none are kept.
    ///
    /// # Errors
    /// Those of `derive`; secrets of another form.
    pub fn secrets<T: Send + Sync + 'static>(
        &self,
        derive: impl FnOnce() -> Result<T>,
    ) -> Result<Secrets<'a, T>> {
        if !self.keep {
            return derive().map(Secrets::Derived);
        }
        if let Some(secrets) = self.secrets.get() {
            return secrets.get().map(Secrets::Kept);
        }
        let derived = Kept::new(derive()?);
        self.secrets.get_or_init(|| derived).get().map(Secrets::Kept)
    }
}

/// What a form keeps between two calls, of a type that is its own business.
pub(in crate::search) struct Kept(Box<dyn Any + Send + Sync>);

impl Kept {
    pub fn new(kept: impl Send + Sync + 'static) -> Self {
        Kept(Box::new(kept))
    }

    /// What was kept.
    ///
    /// # Errors
    /// If another form has kept it: a query opened by the owner of another index.
    pub fn get<T: 'static>(&self) -> Result<&T> {
        let what = Kind::Query.as_str();
        let foreign = || Reader::new(what, &[]).error("it was made for an index of another form");
        self.0.downcast_ref().ok_or_else(|| foreign().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::owner::Owner;
    use crate::{IndexSpec, Keys, Metric, Mode, Precision};
    use std::cell::Cell;

    /// The time of opening would tell clusters that were chosen before from others.
    #[test]
    fn what_is_not_kept_is_derived_each_time_also_where_it_is_held() {
        let spec = IndexSpec::new("docs", 8, Metric::Cosine, Mode::Sealed, Precision::Standard);
        let owner = Owner::new(&Keys::from_master([7; 32]), spec.unwrap()).unwrap();
        let (secrets, derived) = (OnceLock::new(), Cell::new(0));
        for (keep, times) in [(false, 1), (true, 2), (true, 2), (false, 3), (false, 4), (true, 4)] {
            let (id, root, secrets) = (SegmentId([1; 16]), owner.root(), &secrets);
            let segment =
                OpenedSegment { id, rows: 1, level: 0, root, witness: &[], secrets, keep };
            let derive = || {
                derived.set(derived.get() + 1);
                Ok(derived.get())
            };
            segment.secrets(derive).unwrap();
            assert_eq!(derived.get(), times);
        }
    }
}
