//! Token-by-token strategies: indices enter and leave encrypted; the rows that they name are decrypted.

pub(super) mod answer;
pub(super) mod client;
pub(super) mod compact;

pub use ciphervec::lookup::tokens::*;
