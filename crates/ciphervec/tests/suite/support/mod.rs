//! Valid objects of every kind, and the decoders that read them: shared with `tests/allocation.rs` and the fuzz targets.

pub mod decoders;
pub mod samples;
