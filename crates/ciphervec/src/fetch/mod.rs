//! Private fetch: records of one size are fetched from a server that does not learn which. No network and no files.
//!
//! The owner seals records to one length, or the server makes them of what a collection's segments hold ([`FetchedRows`]). It
//! keeps them as a [`FetchTable`], from which a session of `ciphervec-owner` asks for some, and opens them. Both sides know the
//! table's [`Shape`]; nothing but bytes goes between.

mod rows;
mod table;

pub use ciphervec_he::lattice::retrieval::{RetrievalNoise, Shape};
pub use rows::{FetchedRows, Lengths, MOST_LONG, place_len, sealed_row};
pub use table::{FetchKeys, FetchTable, seconds, session_of};
