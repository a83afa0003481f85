//! Every test of this crate's interface in one binary, linked once.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod additive_index;
mod exact;
mod fetch;
mod folds;
mod hostile_bytes;
mod keyed;
mod keyfile;
mod lookup;
#[cfg(feature = "hazmat")]
mod lookup_strategies;
mod members;
mod noisepool;
mod pairs;
mod passkey;
mod probe;
#[cfg(feature = "hazmat")]
mod program;
#[cfg(feature = "hazmat")]
mod program_look_up;
#[cfg(feature = "hazmat")]
mod program_noise;
#[cfg(feature = "hazmat")]
mod program_public;
#[cfg(feature = "hazmat")]
mod program_refreshed;
mod pruned;
mod search;
mod search_pruned;
mod search_sealing;
mod search_together;
mod shares;
mod short_answers;
mod similarity;
mod streamed;
mod support;
mod tokens;
mod vectors;
mod vectors_additive;
mod vectors_at_rest;
mod vectors_lookup;
mod vectors_pairs;
mod vectors_programs;
mod vectors_sharing;
mod vectors_writers;
mod wrapped;
mod writer;
