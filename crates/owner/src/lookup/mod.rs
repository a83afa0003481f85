//! Private lookup, the client's half: documents enter, a query leaves; an answer enters, the sums of the rows that they name
//! leave.

#[cfg(all(test, feature = "hazmat"))]
mod answer_tests;
mod client;
#[cfg(all(test, feature = "hazmat"))]
mod compact_tests;
mod documents;
mod histogram;
mod serialize;
mod tokens;

pub use ciphervec::lookup::*;
pub use client::Client;
pub use documents::Documents;
