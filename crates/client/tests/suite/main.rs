//! Every test of this crate's interface in one binary, linked once.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod collections;
mod conformance;
mod conformance_tables;
mod faults;
mod fetching;
mod filters;
mod former;
mod hostile;
mod late;
mod local;
mod lying;
mod member_attacks;
mod members;
mod oblivious;
mod parity;
mod routing;
mod support;
mod upkeep;
