//! Histogram scheme: sealing documents and opening sums.

mod open;
mod seal;

pub use ciphervec_he::lattice::histogram::*;
pub use open::Opener;
pub use seal::seal;
