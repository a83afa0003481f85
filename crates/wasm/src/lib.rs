//! The key holder's half for JavaScript: typed arrays and plain objects enter, the Rust core works, the same leave. Owner only.
//!
//! It runs wherever WebAssembly does: in a page, a Worker, Node. Nothing here reads a file, starts a thread or opens a
//! connection; who calls it does. Names and meanings are those of `python/ciphervec/_native.pyi`, in camel case.

mod arrays;
mod digest;
mod errors;
mod filter;
mod ids;
mod keys;
mod memory;
mod module;
mod opener;
mod owner;
mod probe;
mod query;
mod records;
mod secret_file;
mod security;
mod segment;
mod segment_directory;
mod server;
mod sharing;
mod spec;
mod state;
mod types;
mod writer;
