//! Requests enter, sealed answers leave: an HTTP server for collections that it cannot read.
#![forbid(unsafe_code)]

pub mod access;
pub mod app;
pub mod audit;
pub mod body;
mod bucket;
mod cache;
pub mod change;
mod check;
pub mod cli;
pub mod collection;
pub mod config;
pub mod connections;
pub mod database;
pub mod description;
pub mod error;
pub mod hex;
pub mod idempotency;
mod lists;
mod local;
pub mod metrics;
pub mod observe;
pub mod openapi;
pub mod problem;
pub mod routes;
pub mod scan_queue;
pub mod serve;
pub mod tokens;
pub mod uploads;

pub use ciphervec::store::{CommitKey, Committed, Compacted, SnapshotEntry};
pub use collection::{Collection, Compaction, Report, State, Statistics};
pub use database::{Database, DatabaseOptions};
pub use error::DatabaseError;
pub use scan_queue::{Answer, QueryTimings};
