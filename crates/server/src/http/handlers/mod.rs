//! Handlers: what answers each endpoint of the table, by subject. Server side.

pub mod blobs;
pub mod collections;
pub mod commits;
pub mod fetch;
pub mod program_uploads;
pub mod programs;
pub mod query;
pub mod service;
pub mod table_uploads;
pub mod tables;
pub mod tokens;
pub mod upkeep;
pub mod uploads;
pub mod verify;
