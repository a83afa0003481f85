//! Collections in a folder or in memory, which this process searches itself.

mod blobs;
pub mod folder;
pub mod memory;
mod store;
