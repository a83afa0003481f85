//! What protects everything but the vectors: envelopes of ids, norms, metadata and documents, filter tags, key files, and
//! noise kept on disk.

#[cfg(feature = "client")]
pub mod aead;
pub mod filter;
pub mod id;
#[cfg(feature = "client")]
pub mod keyfile;
#[cfg(feature = "client")]
pub mod noise_pool;
pub mod records;
#[cfg(feature = "client")]
pub mod sidecar;
