//! Private retrieval: a client fetches records of a table whose server does not learn which.
//!
//! In the ring of the ring form (`docs/sealed.md`, section 7). A table is cut into polynomials, a grid of
//! *nodes* times *columns*. A fetch is encrypted numbers: which node, one-hot, and the bits of the column.
//!
//! ```text
//! column c of the answer:  Σ_r D_{c,r} · node_r        one scan, as of a segment
//! the record's column:     x + bit ⊡ (y − x)           a tree of external products
//! ```
//!
//! The same tree folds the scanned clusters of a search to those that a query chooses.

mod answer;
mod bound;
mod clusters;
mod keys;
mod query;
mod selector;
mod shape;
mod table;

/// What `ciphervec-he-secret` encrypts and decrypts with; no part of the interface.
#[doc(hidden)]
pub mod inner {
    pub use super::keys::{FINE_LEVELS, LEVELS, param_id};
    pub use super::selector::{GADGET, first_message};
    pub use super::table::whiten;
}

pub use answer::{ANSWER_BYTES, RetrievalAnswer, answer};
pub use bound::{FoldNoise, RetrievalNoise};
pub use clusters::{ChoiceShape, ClusterChoice, ClusterFolds};
pub use keys::SelectorKeys;
pub use query::RetrievalQuery;
pub use shape::{
    MAX_NODES, MAX_POLYNOMIALS, MAX_RECORD, PAYLOAD_BITS, PAYLOAD_BYTES, Place, Shape,
};
pub use table::Table;
