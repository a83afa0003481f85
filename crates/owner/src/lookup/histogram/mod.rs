//! Histogram strategy, the client's half: it encrypts how often a document names each row, and decrypts sums of rows.

pub(super) mod client;

pub use ciphervec::lookup::histogram::*;
