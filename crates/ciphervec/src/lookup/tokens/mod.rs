//! Strategies token by token: from every encrypted index the server computes the encrypted row that
//! it names.
//!
//! A `design` says which functions of an index are made and at which levels, `parameters` picks
//! the smallest ring that `bound` finds precise enough, and a `recipe` is both; `compact` has what
//! bootstraps indices that were sent in few bytes;
//! `embed` sums the functions with a table's `weights`.

pub mod answer;
mod basis;
pub(super) mod bound;
mod candidate;
pub(super) mod carrier;
pub mod compact;
pub(super) mod cost;
pub(super) mod design;
pub(super) mod embed;
pub mod messages;
mod parameters;
pub mod recipe;
pub(super) mod weights;
