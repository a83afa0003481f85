//! The key holder's half for JavaScript: typed arrays and plain objects enter, the Rust core works, the same leave. Owner only.
//!
//! It runs wherever WebAssembly does: in a page, a Worker, Node. Nothing here reads a file, starts a thread or opens a
//! connection; who calls it does. Names and meanings are those of `python/ciphervec/_native.pyi`, in camel case.
#![cfg_attr(
    not(feature = "search"),
    allow(dead_code, reason = "lookup alone needs few of the helpers")
)]

mod arrays;
mod errors;
#[cfg(feature = "lookup")]
mod lookup;
mod memory;
mod module;
mod secret_file;
mod wipe;

#[cfg(feature = "search")]
mod client;
#[cfg(feature = "search")]
mod digest;
#[cfg(feature = "search")]
mod filter;
#[cfg(feature = "search")]
mod host;
#[cfg(feature = "search")]
mod ids;
#[cfg(feature = "search")]
mod keys;
#[cfg(feature = "search")]
mod opener;
#[cfg(feature = "search")]
mod owner;
#[cfg(feature = "search")]
mod probe;
#[cfg(feature = "search")]
mod query;
#[cfg(feature = "search")]
mod records;
#[cfg(feature = "search")]
mod security;
#[cfg(feature = "search")]
mod segment;
#[cfg(feature = "search")]
mod segment_directory;
#[cfg(feature = "search")]
mod server;
#[cfg(feature = "search")]
mod sharing;
#[cfg(feature = "search")]
mod spec;
#[cfg(feature = "search")]
mod state;
#[cfg(feature = "search")]
mod types;
#[cfg(feature = "search")]
mod wish;
#[cfg(feature = "search")]
mod writer;
