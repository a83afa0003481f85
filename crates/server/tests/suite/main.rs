//! Every test of this crate's interface in one binary, linked once.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod append;
mod authorisation;
mod bucket;
mod collections;
#[cfg(unix)]
mod connections;
mod console;
mod cross_origin;
mod fetching;
mod hostile;
mod issuers;
mod limits;
mod no_secrets;
#[cfg(unix)]
mod process;
mod programs;
mod programs_hostile;
mod protocol;
#[cfg(unix)]
mod resources;
mod sessions;
mod support;
mod telemetry;
