//! Compact transport, the client's half: indices, as fractions of a turn, are encrypted in half a ring.

pub(in crate::lookup) mod query;

pub use ciphervec::lookup::tokens::compact::*;
