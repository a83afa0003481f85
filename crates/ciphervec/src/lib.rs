//! Search embeddings that stay encrypted.
//!
//! The owner's half, behind the feature `client`, seals vectors, builds queries and opens answers:
//! [`Keys`], [`search::Owner`], [`search::SegmentDirectory`]. The server's half holds sealed segments
//! and answers queries it cannot read: [`search::ServerIndex`]. Between the two there are only bytes.
#![forbid(unsafe_code)]

pub mod decode;
pub mod error;
pub mod fetch;
pub mod index;
#[cfg(feature = "client")]
pub mod keys;
pub mod lookup;
pub mod program;
pub mod protect;
mod refusal;
pub mod search;
#[cfg(feature = "client")]
pub mod sharing;
pub mod similarity;
pub mod store;

pub use ciphervec_he::lattice::{ErrorBound, SegmentId};
pub use ciphervec_he::wire::KeyId;
pub use error::{Error, Result};
pub use index::form::Form;
pub use index::metric::Metric;
pub use index::mode::{Mode, Precision};
pub use index::network::Network;
pub use index::scheme::Scheme;
pub use index::security::SecurityStatement;
pub use index::spec::{IndexSpec, MAX_QUERIES};
#[cfg(feature = "client")]
pub use keys::Keys;
pub use protect::id::Id;
