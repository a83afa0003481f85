//! Strategy `histogram`: the client encrypts how often a document names each row, the server sums
//! those rows.

pub mod messages;
pub(super) mod scales;
