//! Lattice scheme: secrets of segments and queries, sealing and opening.

pub mod compact;
pub mod histogram;
pub mod nonce;
pub mod retrieval;
pub mod ring;

pub use ciphervec_he::lattice::*;
