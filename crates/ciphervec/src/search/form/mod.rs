//! Forms: how an index keeps rows and answers queries, one folder each with its two halves. Both sides.

mod additive;
mod batch;
mod compact;
mod contract;
mod halves;
#[cfg(feature = "client")]
mod key_holder;
#[cfg(feature = "client")]
mod opening;
mod plain;
mod ring;

#[cfg(feature = "client")]
pub(super) use ciphervec_he::lattice::ring::Hints;
use contract::SearchForm;
#[cfg(feature = "client")]
pub use contract::{AnswerFormat, Exactness, Expected, PackingChoice};
#[cfg(feature = "client")]
pub(super) use contract::{
    AnswerPart, Estimates, ExactCosine, Kept, KeyHolderHalf, KeyPairSlot, OpenedSegment, Opening,
    RowEncryptor, RowSum, StoredRows, expect_key, not_probed,
};
pub use contract::{Evaluation, Runner, ServerTimings, Sink};
pub(super) use contract::{Request, ServerHalf};
#[cfg(feature = "client")]
pub(super) use halves::MaskSeed;

use crate::index::form::Form;
use crate::index::spec::IndexSpec;

/// The form of an index: one row each.
pub(super) fn of(spec: &IndexSpec) -> &dyn SearchForm {
    match spec.form() {
        Form::Plain => &plain::Plain,
        Form::Compact(width) => width,
        Form::Ring(rows) => rows,
        Form::Additive(chosen) => chosen,
    }
}
