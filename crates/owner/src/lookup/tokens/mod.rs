//! Token-by-token strategies, the client's half: it encrypts indices, and decrypts the rows that they name.

pub(super) mod answer;
pub(super) mod client;
pub(super) mod compact;
mod sender;

pub use ciphervec::lookup::tokens::*;
