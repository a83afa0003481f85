//! Histogram strategy: how often a document names each row enters, encrypted, the sums of those
//! rows leave. Both sides.

#[cfg(feature = "client")]
pub(super) mod client;
pub(super) mod messages;
pub(super) mod scales;
