//! A server, and one collection on it. Nothing here holds a key.

pub mod address;
mod blobs;
pub mod cache;
mod changing;
pub mod database;
mod fetching;
pub mod frame;
pub mod listing;
pub mod problem;
pub mod sending;
pub mod session;
pub mod sinks;
pub mod store;
mod uploading;
