//! Keyed private lookup, the asking half: a [`KeyedClient`] asks a server for the records of some keys, and the server learns
//! neither which keys nor whether they were there. An owner's own tables are sealed first ([`write_table`]).

mod client;
mod seal;

pub use ciphervec::keyed::*;
pub use client::{AskedKeys, KeyedClient, LOOKUP_CLASSES};
pub use seal::{new_records, read_record, write_table};
