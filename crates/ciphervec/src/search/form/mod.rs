//! Forms: how an index keeps rows and answers queries, one folder each with the server's half. Both sides.

pub mod additive;
mod batch;
pub mod compact;
pub mod contract;
mod halves;
pub mod plain;
pub mod ring;

pub use contract::{Evaluation, Runner, ServerTimings, SessionKeys, Sink, TreeLender};
pub(super) use contract::{Request, ServerHalf, no_keys};
use contract::{SearchForm, ServerForm};

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

/// The same with the way to the server's half.
pub(super) fn served(spec: &IndexSpec) -> &dyn ServerForm {
    match spec.form() {
        Form::Plain => &plain::Plain,
        Form::Compact(width) => width,
        Form::Ring(rows) => rows,
        Form::Additive(chosen) => chosen,
    }
}
