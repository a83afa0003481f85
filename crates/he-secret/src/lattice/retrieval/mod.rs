//! Private retrieval: keys, queries of records that hide which, and decrypting the answers.

mod clusters;
mod keys;
mod open;
mod query;

pub use ciphervec_he::lattice::retrieval::*;
pub use keys::RetrievalKey;
