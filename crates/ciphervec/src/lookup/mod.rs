//! Private lookup: a client's encrypted indices and a server's plain tables give the sums of the rows that the indices name.
//!
//! A [`Server`] prepares a [`Table`] and describes it by a [`Spec`]; a client, behind the feature `client`, turns documents into
//! a query and the answer into numbers. Between the two there are only bytes. `docs/lookup.md` says what each side learns.

mod basis;
mod bound;
mod bytes;
mod chebyshev;
#[cfg(feature = "client")]
mod client;
mod cost;
#[cfg(feature = "client")]
mod counting;
#[cfg(feature = "client")]
mod documents;
mod embed;
mod histogram;
mod indicator;
mod ive;
mod messages;
mod parameters;
mod planner;
mod recipe;
mod server;
mod small_batch;
mod spec;
mod strategy;
mod table;
#[cfg(feature = "client")]
mod tokens;

pub use bound::ScaleSelection;
#[cfg(feature = "client")]
pub use client::Client;
pub use cost::{Operations, Speed};
#[cfg(feature = "client")]
pub use documents::Documents;
pub use embed::{Weights, embed, generate};
pub use histogram::Scales;
pub use planner::{BYTES_PER_SECOND, Estimate, Next, Planner, Request};
pub use recipe::{Recipe, Shape};
pub use server::Server;
pub use small_batch::{SmallBatch, SmallTables};
pub use spec::{MAX_LIMIT, Options, PADDING, Pooling, Spec};
pub use strategy::Strategy;
pub use table::{MAX_COLUMNS, MAX_TABLE_ROWS, MAX_TABLES, Table, TableDigest};
