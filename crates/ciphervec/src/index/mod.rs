//! The public description of an index, checked: both sides agree on it.

pub mod form;
pub mod metric;
pub mod mode;
pub mod network;
pub mod scheme;
pub mod security;
pub mod spec;
