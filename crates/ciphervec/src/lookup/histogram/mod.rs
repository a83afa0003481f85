//! Histogram strategy: how often a document names each row enters, encrypted, the sums of those
//! rows leave. Both sides.

pub mod messages;
pub(super) mod scales;
