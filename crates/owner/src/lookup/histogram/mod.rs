//! Histogram strategy: how often a document names each row enters, encrypted; sums of rows are decrypted.

pub(super) mod client;

pub use ciphervec::lookup::histogram::*;
