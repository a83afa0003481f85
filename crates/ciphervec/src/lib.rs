//! Search embeddings that stay encrypted.
#![forbid(unsafe_code)]

#[cfg(feature = "client")]
pub mod aead;
pub mod decode;
pub mod filter;
pub mod id;
#[cfg(feature = "client")]
pub mod keyfile;
pub mod records;
#[cfg(feature = "client")]
pub mod sidecar;
pub mod store;
