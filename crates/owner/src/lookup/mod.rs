//! Private lookup, the client's half: queries from documents, and from answers the sums of the rows that they name.

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
