//! Protection of everything but the vectors, as far as a server reads it: ids, records, filter tags, receipts, and errors. What seals
//! and opens is the key owner's.

pub mod audit;
pub mod error;
pub mod filter;
pub mod hybrid;
pub mod id;
pub mod receipt;
pub mod records;
