//! Protection of everything but the vectors: ids, norms, metadata, documents, filter values, keys
//! and stored noise enter, envelopes and tags leave. Key owner's side, but for tags.

#[cfg(feature = "client")]
pub mod aead;
#[cfg(feature = "client")]
pub mod checkpoint;
#[cfg(feature = "client")]
pub mod consumed;
pub mod filter;
pub mod hybrid;
pub mod id;
#[cfg(feature = "client")]
pub mod keyfile;
#[cfg(feature = "client")]
pub mod noise_pool;
#[cfg(feature = "client")]
pub mod phrase;
pub mod records;
#[cfg(feature = "client")]
pub mod shares;
#[cfg(feature = "client")]
pub mod sidecar;
#[cfg(feature = "client")]
pub mod state;
#[cfg(feature = "client")]
pub mod wrapped;
