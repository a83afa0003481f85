//! Search embeddings that stay encrypted.
//!
//! The owner's half, behind the feature `client`, seals vectors, builds queries and opens answers:
//! [`Keys`], [`search::Owner`], [`search::Catalogue`]. The server's half holds sealed segments
//! and answers queries it cannot read: [`search::ServerIndex`]. Between the two there are only bytes.
#![forbid(unsafe_code)]

#[cfg(feature = "client")]
pub mod aead;
pub mod decode;
pub mod error;
pub mod filter;
pub mod id;
#[cfg(feature = "client")]
pub mod keyfile;
#[cfg(feature = "client")]
pub mod keys;
pub mod lookup;
mod message;
pub mod metric;
pub mod mode;
#[cfg(feature = "client")]
pub mod noisepool;
#[cfg(feature = "client")]
mod packing;
pub mod pairs;
#[cfg(feature = "client")]
mod quantize;
pub mod records;
pub mod scheme;
pub mod search;
#[cfg(feature = "client")]
pub mod sidecar;
pub mod similarity;
pub mod spec;
pub mod store;

pub use ciphervec_he::sealed::{ErrorBound, SegmentId};
pub use ciphervec_he::wire::KeyId;
pub use error::{Error, Result};
pub use id::Id;
#[cfg(feature = "client")]
pub use keys::Keys;
pub use message::MAX_QUERIES;
pub use metric::Metric;
pub use mode::{Mode, Precision};
pub use scheme::Scheme;
pub use spec::{IndexSpec, SecurityStatement};
