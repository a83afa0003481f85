//! Token-by-token strategies: encrypted indices enter, the encrypted rows that they name leave.
//! Both sides.
//!
//! A [`design`] says which functions of an index are made and at which levels, [`parameters`] picks
//! the smallest ring that [`bound`] finds precise enough, and a [`recipe`] is both; [`compact`](self::compact) has what
//! bootstraps indices that were sent in few bytes;
//! [`embed`](self::embed::embed) sums the functions with a table's [`weights`].

pub(super) mod answer;
mod basis;
pub(super) mod bound;
mod candidate;
#[cfg(feature = "client")]
pub(super) mod client;
pub(super) mod compact;
pub(super) mod cost;
pub(super) mod design;
pub(super) mod embed;
pub(super) mod messages;
mod parameters;
pub(super) mod recipe;
pub(super) mod weights;
