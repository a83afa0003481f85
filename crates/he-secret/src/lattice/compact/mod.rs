//! Compact form: secrets, sealing, opening and checking answers.

mod asked;
mod check;
mod exact;
mod masks;
mod open;
mod params;
mod seal;
mod serialize;
mod witness;
mod words;

pub use asked::AskedQueries;
pub use check::{AnswerCheck, CheckWeights};
pub use ciphervec_he::lattice::compact::*;
pub use exact::{MaskedSum, settle, unseal_exact};
pub use masks::Masks;
pub use open::{Scratch, SegmentKey, Unmasked, unmask, unseal};
pub use params::Compact;
#[cfg(feature = "hazmat")]
pub use seal::seal_with_key;
pub use seal::{SealedRows, seal};
pub use witness::Witness;
pub use words::Words;
