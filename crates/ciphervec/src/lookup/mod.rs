//! Private lookup: a client's encrypted indices and a server's plain tables give the sums of the rows that the indices name.
//!
//! A [`Server`] prepares a [`Table`] and describes it by a [`Spec`]; a client, behind the feature `client`, turns documents into
//! a query and the answer into numbers. Between the two there are only bytes. `docs/lookup.md` says what each side learns.

mod bytes;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod documents;
mod histogram;
mod server;
mod spec;
mod table;

#[cfg(feature = "client")]
pub use client::Client;
#[cfg(feature = "client")]
pub use documents::Documents;
pub use histogram::Scales;
pub use server::Server;
pub use spec::{MAX_LIMIT, Options, PADDING, Pooling, Spec};
pub use table::{MAX_COLUMNS, MAX_TABLE_ROWS, MAX_TABLES, Table, TableDigest};
