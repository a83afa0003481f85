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
//!
//! # Bytes of a table's file
//!
//! The description, then the buckets, part after part. Little-endian, the description is:
//!
//! |bytes|field|
//! |---|---|
//! |8|`CVKEYTAB`|
//! |4|version, u32: 1|
//! |16|name, random: fetches name it|
//! |1|1 where an owner sealed the records, else 0|
//! |32|seed of the hash of keys; zeros where sealed|
//! |8|records, u64|
//! |4|bytes of the longest record, u32|
//! |1|parts p, 1 to 3|
//! |4|buckets of a part b, u32|
//! |4|attempt: which places keys have|
//! |32 each|the cap: ⌈pb / 2^h⌉ hashes, h = max(0, ⌈log2 pb⌉ − 10)|
//! |32|sealed: keyed BLAKE3 of all before|
//!
//! A bucket is the fewest whole 7,168 bytes that hold a slot and the path: slots, zeros, then h hashes, the path to the cap. A
//! slot is a tag of 16 bytes, zeros where it is empty, and the body: a record behind its u16 length, filled up; nothing in a
//! table of empty records; sealed, XChaCha20-Poly1305 (nonce, ciphertext, tag) of a record behind its u32 length, with the
//! table's name and the record's tag as associated data.
//!
//! - **Tag and places** are the output of BLAKE3 keyed by the seed over a byte (0 bytes, 1 text, 2 integer) and the key (UTF-8;
//!   i128): 16 bytes of tag, three words u64. The bucket of part i is ⌊m(word i ⊕ attempt · 9e3779b97f4a7c15) b / 2^64⌋, m the
//!   finaliser of SplitMix64.
//! - **A leaf** is BLAKE3 (`ciphervec v1 keyed-bucket`) of name, the bucket's number of all parts (u64) and slots with zeros; a
//!   node (`ciphervec v1 keyed-node`) of its two children, zeros where there is no bucket.
//! - **The fingerprint** is BLAKE3 (`ciphervec v1 keyed-table`) of the description.

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
