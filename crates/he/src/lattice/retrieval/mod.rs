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
//!
//! # Bytes
//!
//! Scheme 2; the parameter id is that of `retrieval: N=4096 q, P = two largest 50-bit primes = 1 mod 8192, ternary sigma=3.2, 14
//! bits a coefficient, digits 4 x 7 bits`.
//!
//! |kind|payload|
//! |---|---|
//! |keys (26)|epoch u32; for each of 10 steps of the tree two keys, one from the sixth on, and the key of t²: seed 32, polynomials modulo q and P, 25,600 bytes each|
//! |query (27)|shape 16; epoch u32; fetches u32, 1 to 16; seed 32; per ciphertext c0, 25,600 bytes|
//! |answer (28)|shape 16; epoch u32; fetches u32; per fetch and layer v, 4,096 words of 25 bits, then u, as many of 19, in little-endian bit order|
//!
//! The shape is the first half of BLAKE3's `derive_key` of name 16, records u64, bytes of a record u64 and nodes u64, context
//! `ciphervec v1 retrieval-shape`.

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
