//! The HTTP server of encrypted collections, which it cannot read.
#![forbid(unsafe_code)]

mod audit;
pub mod auth;
pub mod change;
mod claim;
pub mod cli;
pub mod config;
mod connections;
mod descriptors;
pub mod hex;
pub mod http;
mod json_limits;
mod log;
mod memory;
mod metrics;
pub mod origin;
mod serve;
pub mod storage;
mod telemetry;

pub use ciphervec::store::{CommitKey, Committed, Compacted, SnapshotEntry};
pub use storage::{
    Answer, Collection, Database, DatabaseError, DatabaseOptions, QueryTimings, Report, State,
    Statistics,
};
