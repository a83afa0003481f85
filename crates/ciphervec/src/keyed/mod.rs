//! Keyed private lookup, the server's half: a table of records by key, of which a client looks up some without showing which.
//! No key in here, no network.
//!
//! A publisher puts records into [`Records`] and writes them as one file, a [`KeyedTable`]. Its [`Description`] is public: how
//! keys give places, and hashes that every bucket is checked against. A server answers fetches of buckets from the table, by
//! the engine of [`crate::fetch`]; the client of `ciphervec-owner` opens them.
//!
//! ```text
//! key ── keyed hash ──▶ tag, a place in each part
//! part: buckets of whole polynomials; bucket: slots of (tag, record), then its path in the tree of hashes
//! ```

mod description;
mod geometry;
mod hash;
mod placing;
mod records;
mod table;
mod tree;

pub use description::{Description, MAGIC, VERSION};
pub use geometry::{Geometry, MAX_CONTENT};
pub use hash::{Digest, KeyHash, LookupKey, TAG_BYTES, Tag};
pub use records::{Records, Sealing};
pub use table::KeyedTable;
