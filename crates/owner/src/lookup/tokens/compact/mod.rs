//! Compact transport, the client's half: indices, as fractions of a turn, are encrypted in half a ring.

mod query;

pub use ciphervec::lookup::tokens::compact::*;
