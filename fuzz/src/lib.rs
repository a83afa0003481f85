//! The decoders that the targets call: the same functions that the tests run on stable Rust.

#[path = "../../crates/ciphervec/tests/support/decoders.rs"]
mod decoders;

pub use decoders::*;
