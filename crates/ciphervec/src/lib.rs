//! Search embeddings that stay encrypted.
//!
//! The server's half holds sealed segments and answers queries it cannot read: [`search::ServerIndex`]. The owner's, which
//! seals, asks and opens, is another crate, `ciphervec-owner`: nothing here can name a secret key. Between the two there are
//! only bytes.
#![forbid(unsafe_code)]

pub mod decode;
pub mod error;
pub mod fetch;
pub mod index;
pub mod keyed;
pub mod lookup;
pub mod program;
pub mod protect;
mod refusal;
pub mod search;
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
pub use protect::id::Id;
