//! Compact transport: indices enter as fractions of a turn, and leave encrypted in half a ring.

pub(in crate::lookup) mod query;

pub use ciphervec::lookup::tokens::compact::*;
