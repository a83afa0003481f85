//! Lengths of hybrid public-key encryption, for wraps of writers' keys. A server knows no more of them.

/// Bytes of a public key of the suite.
pub const PUBLIC_KEY: usize = 1216;
/// The only suite there is.
pub const SUITE: u16 = 1;
/// Bytes of an encapsulated key.
pub const ENCAPSULATED: usize = 1120;
/// Bytes of 32 sealed ones.
pub const SEALED: usize = 48;
