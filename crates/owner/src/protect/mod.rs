//! Protection of everything but the vectors: envelopes and tags of ids, norms, metadata, documents, filter values, keys and
//! stored noise. Key owner only.

pub mod aead;
pub mod checkpoint;
pub mod consumed;
pub mod filter;
pub mod hybrid;
pub mod keyfile;
pub mod noise_pool;
pub mod passkey;
pub mod phrase;
pub mod records;
pub mod shares;
pub mod sidecar;
pub mod state;
pub mod wrapped;

pub use ciphervec::protect::*;
