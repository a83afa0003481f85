//! Private lookup: a client encrypts indices, and a server sums the rows of its plain tables that they name.
//!
//! A [`Server`] prepares a [`Table`] and describes it by a [`Spec`]; a client, in
//! `ciphervec-owner`, turns documents into a query and the answer into numbers. Between the two there
//! are only bytes. `docs/lookup.md` says what each side learns.

#[doc(hidden)]
pub mod histogram;
mod options;
mod planner;
#[doc(hidden)]
pub mod serialize;
mod server;
mod small_batch;
#[doc(hidden)]
pub mod spec;
mod strategy;
mod table;
#[doc(hidden)]
pub mod tokens;
mod transport;

pub use histogram::scales::HistogramScales;
pub use options::{MAX_LIMIT, Options, PADDING, Pooling};
pub use planner::{BYTES_PER_SECOND, Estimate, Next, Planner, Request};
pub use server::Server;
pub use small_batch::{SmallBatch, SmallTables};
pub use spec::Spec;
pub use strategy::Strategy;
pub use table::{MAX_COLUMNS, MAX_TABLE_ROWS, MAX_TABLES, Table, TableDigest};
pub use tokens::bound::ScaleSelection;
pub use tokens::cost::{Operations, Speed};
pub use tokens::design::Shape;
pub use tokens::embed::{embed, generate};
pub use tokens::recipe::Recipe;
pub use tokens::weights::Weights;
pub use transport::Transport;
