//! Ring form: secrets, sealing, encrypting queries, opening and checking answers.

mod check;
mod galois;
mod keys;
mod open;
mod query;
mod seal;
mod stored_sums;

pub use check::{AnswerCheck, CheckWeights};
pub use ciphervec_he::lattice::ring::*;
pub use keys::{QueryKey, SegmentKey};
pub use open::{OpenedRows, QueryOpener, unseal};
pub use query::AskedLevel;
#[cfg(feature = "hazmat")]
pub use seal::seal_with_key;
pub use seal::{Packed, pack, seal};
