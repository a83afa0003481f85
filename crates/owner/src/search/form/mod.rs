//! Forms: how an index keeps rows and answers queries, one folder each with the half that has keys. Owner only.

mod additive;
mod compact;
mod contract;
mod key_holder;
mod opening;
mod plain;
mod ring;

use crate::index::form::Form;
use crate::index::spec::IndexSpec;
pub use ciphervec::search::form::*;
pub(super) use ciphervec_he_secret::lattice::ring::Hints;
pub use contract::{AnswerFormat, Exactness, Expected, PackingChoice};
pub(super) use contract::{
    AnswerPart, Estimates, ExactCosine, Kept, KeyHolderHalf, KeyPairSlot, OpenedSegment, Opening,
    OwnerForm, RowEncryptor, RowSum, SealingForm, StoredRows, expect_key, not_probed,
};
pub(super) use key_holder::MaskSeed;

/// The form of an index: one row each.
pub(super) fn of(spec: &IndexSpec) -> &dyn OwnerForm {
    match spec.form() {
        Form::Plain => &plain::Plain,
        Form::Compact(width) => width,
        Form::Ring(rows) => rows,
        Form::Additive(chosen) => chosen,
    }
}

/// The same with the way to what encrypts rows.
pub(super) fn sealing(spec: &IndexSpec) -> &dyn SealingForm {
    match spec.form() {
        Form::Plain => &plain::Plain,
        Form::Compact(width) => width,
        Form::Ring(rows) => rows,
        Form::Additive(chosen) => chosen,
    }
}
