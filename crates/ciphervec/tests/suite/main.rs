//! Every test of this crate's interface that needs no key in one binary, linked once. Others are those of `ciphervec-owner`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audit;
mod store_faults;
mod store_folder;
mod store_kill;
