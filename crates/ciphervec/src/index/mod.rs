//! The description of an index: names enter, one checked value leaves. Both sides.

pub mod form;
pub mod metric;
pub mod mode;
pub mod network;
pub mod scheme;
pub mod security;
pub mod spec;
