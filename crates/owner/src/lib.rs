//! Search embeddings that stay encrypted: the key holder's half.
//!
//! Vectors are sealed, queries made and answers opened: [`Keys`], [`search::Owner`], [`search::SegmentDirectory`]. Every module
//! stands where that of `ciphervec` does, and passes its items on: whoever holds keys depends on this crate alone. A server
//! depends on `ciphervec` and never on this one. Between the two there are only bytes.
#![forbid(unsafe_code)]
#![allow(
    hidden_glob_reexports,
    reason = "a module stands at the path of the one that it passes on, whose insides are for this crate"
)]

pub mod fetch;
pub mod keyed;
pub mod keys;
pub mod lookup;
pub mod members;
pub mod program;
pub mod protect;
pub mod search;
pub mod sharing;
pub mod similarity;

pub use ciphervec::{
    Error, ErrorBound, Form, Id, IndexSpec, KeyId, MAX_QUERIES, Metric, Mode, Network, Precision,
    Result, Scheme, SecurityStatement, SegmentId, decode, error, index, store,
};
pub use keys::Keys;
