//! Protection of everything but the vectors: ids, norms, metadata, documents, filter values, keys
//! and stored noise enter, envelopes and tags leave. Key owner's side, but for tags.

pub mod error;
pub mod filter;
pub mod hybrid;
pub mod id;
pub mod records;
