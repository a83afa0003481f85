//! What is believed of what a store shows: one file a subject. Nothing below this module is taken from a server unchecked.
//!
//! # Formats of a description
//!
//! JSON: `format` 2 to 8, `spec` (a frame, base64), `scheme` (`sealed` for the lattice scheme), `key_id`, `epoch`, and `settings`
//! sealed as a record. Formats are written as needed:
//!
//! |format|when|adds|
//! |---:|---|---|
//! |1|read only|no `scheme`: `sealed`|
//! |3|the keys of the collection have changed|settings: the mask seed, and during the change `rotation` with `previous_id`, `previous` (the old key, sealed under the new one, base64) and `following` (the other way round, or null)|
//! |4|the spec has an incarnation, or the owner authenticates states|settings: `authenticated`, of a collection without an incarnation; `originals`, where vectors are kept as put in; `network` (`megabits`, `latency_ms`), where rows are packed for another than the usual; `untagged`, ids of segments (hexadecimal) from before a field became filterable, whose tags don't count; `embedding_function`: `name`, `config` (JSON values; empty in mode `open`), `named` (whether the name is the function's own word), padded with spaces to a multiple of 512 bytes|
//! |5|the settings have `routing`|`count`, `probes`, `decoys` (numbers or null), `recall`, `server_learns_queries`, as chosen when the collection was made; `oblivious` if true, which clients before 0.2 refuse|
//! |6|the settings have `center`|the center given for the collection, float32 in base64|
//! |7|the settings have `sparse`|`bm25` with `k1` and `b`, or `"vectors"`; segments of the owner have the blob `terms`|
//! |8|the collection has members, or the settings have `multi`|in clear: `members`, the list (base64); settings: `multi` with `width`, `k_sim`, `repetitions`, `d_proj`, `dimension` (of the index) and `seed`; the signs are BLAKE3's output under the context `ciphervec 2026-11-29 signs of fixed dimensional encodings` for these as u32, and the seed as u64|
//!
//! # Entries that are remembered
//!
//! An entry is a file `<kind>/<digits>`, or the same elsewhere. Those marked *sealed* are what `vault.rs` writes.
//!
//! |name|content|
//! |---|---|
//! |`trust/`, a digest of URL and collection|*sealed* JSON: watermark, pins, the latest state (`remembered.rs`)|
//! |`place/` and BLAKE3 of `<absolute path>\n<id of the key it is sealed under>`|*sealed* origin, in hexadecimal, of the collection with members that was seen at this path|
//! |`consumed/` and BLAKE3 of the origin|*sealed* list of consumed segments|
//! |`quarantine/` and 32 digits of BLAKE3 of the description, then the segment|*sealed*: since, reason|
//! |`sessions/` and 32 digits of BLAKE3 of description and key|*sealed* JSON: `epoch` of the session, `used`, its count|
//! |`blobs/` and BLAKE3 of `<URL>\n<collection>\n<segment>\n<blob>`|*sealed* blob as the server sent it|
//! |`flooding/` and 32 digits of BLAKE3 of the description|JSON in clear: `segments` and `keys`, the scores with noise 2⁻⁴ that others were shown, by segment, and by key id and epoch; `allowed`, since 0.2: how many may be, `rows` of a segment and `keys` under a query key. In Python in the user's own folder, whatever `state=` is, for collections, `Owner` and `Index` alike|
//!
//! Python clients before 0.2 wrote these in clear; they are read where an entry above is missing: `servers/<SHA-256 of the
//! URL, half>/<SHA-256 of the collection's name, half>.json` (formats 1 and 2), `collections/<origin>.json` and
//! `collections/<32 digits of the origin>.consumed`.

pub mod choices;
pub mod description;
pub mod fetch_book;
pub mod former;
pub mod holder;
mod home;
pub mod pins;
pub mod quarantine_book;
mod remembered;
pub mod session_book;
pub mod signed;
pub mod state;
pub mod trust;
pub mod vault;
