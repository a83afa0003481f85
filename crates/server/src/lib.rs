//! Requests enter, sealed answers leave: an HTTP server for collections that it cannot read.
#![forbid(unsafe_code)]

mod check;
pub mod collection;
pub mod database;
pub mod description;
pub mod error;
pub mod scan_queue;

pub use collection::{Collection, CommitKey, Committed, Report, State, Statistics};
pub use database::{Database, DatabaseOptions};
pub use error::DatabaseError;
pub use scan_queue::{Answer, QueryTimings};
