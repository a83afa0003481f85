//! The decoders that the targets call: the same functions that the tests run on stable Rust.

#[path = "../../crates/owner/tests/suite/support/decoders/mod.rs"]
mod decoders;

pub use decoders::*;
