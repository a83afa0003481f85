//! Valid objects of every kind, and the decoders that read them: shared with `tests/allocation.rs` and
//! the fuzz targets. A bootstrapper for programs.

#[cfg(feature = "hazmat")]
pub mod bootstrapper;
pub mod decoders;
pub mod samples;
