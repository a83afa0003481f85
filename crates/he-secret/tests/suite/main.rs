//! Every test of this crate's interface in one binary: linked once, and run again on every
//! back-end.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(feature = "hazmat")]
mod attacks;
#[cfg(feature = "hazmat")]
mod attacks_factoring;
#[cfg(feature = "hazmat")]
mod ckks;
mod ckks_embedding;
mod clusters;
mod compact;
mod elgamal;
mod factoring;
mod factoring_bytes;
mod halves;
mod histogram;
mod okamoto_uchiyama;
mod retrieval;
mod ring;
mod ring_check;
mod rows;
