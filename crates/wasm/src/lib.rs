//! The key holder's half for JavaScript, wherever WebAssembly runs: in a page, a Worker, Node. Nothing here reads a file, starts a thread
//! or opens a connection: [`host`] asks JavaScript for it.
//!
//! Four modules are made of it: `write`, which has the whole client, `search`, which reads collections alone, and `lookup` are shipped;
//! `parts` has what a collection is made of, class by class, by the names of `python/ciphervec/_native.pyi` in camel case, for tests of the
//! core in WebAssembly.
#![cfg_attr(
    not(feature = "parts"),
    allow(dead_code, reason = "what is shipped needs few of the helpers")
)]

mod arrays;
#[cfg(feature = "write")]
mod audit;
mod errors;
#[cfg(feature = "lookup")]
mod lookup;
mod memory;
mod module;
mod secret_file;
mod wipe;

#[cfg(feature = "write")]
mod changing;
#[cfg(feature = "search")]
mod client;
#[cfg(feature = "search")]
mod collection;
#[cfg(feature = "parts")]
mod digest;
#[cfg(feature = "parts")]
mod evaluation_keys;
#[cfg(feature = "parts")]
mod filter;
#[cfg(feature = "search")]
mod host;
#[cfg(feature = "search")]
mod ids;
#[cfg(feature = "search")]
mod keys;
#[cfg(feature = "write")]
mod making;
#[cfg(feature = "write")]
mod members;
#[cfg(feature = "parts")]
mod opener;
#[cfg(feature = "parts")]
mod owner;
#[cfg(feature = "parts")]
mod probe;
#[cfg(feature = "parts")]
mod query;
#[cfg(feature = "parts")]
mod records;
#[cfg(feature = "search")]
mod security;
#[cfg(feature = "parts")]
mod segment;
#[cfg(feature = "parts")]
mod segment_directory;
#[cfg(feature = "parts")]
mod server;
#[cfg(feature = "search")]
mod sharing;
#[cfg(feature = "write")]
mod spec;
#[cfg(feature = "parts")]
mod state;
#[cfg(feature = "write")]
mod table;
#[cfg(feature = "parts")]
mod types;
#[cfg(feature = "search")]
mod values;
#[cfg(feature = "parts")]
mod wish;
#[cfg(feature = "write")]
mod writer;
#[cfg(feature = "write")]
mod writer_card;
