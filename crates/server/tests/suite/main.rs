//! Every test of this crate's interface in one binary, linked once.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod authorisation;
mod bucket;
mod collections;
mod hostile;
mod no_secrets;
#[cfg(unix)]
mod process;
mod protocol;
mod support;
