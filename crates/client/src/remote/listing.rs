//! What a server says of a collection, checked; it is trusted for none of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine};
use ciphervec_owner::SegmentId;
use indexmap::IndexMap;
use serde::Deserialize;

use crate::change::Listing;
use crate::change::{Segments, StoredSegment};
use crate::error::{Error, Result};
use crate::hex::Hex;
use crate::json;
use crate::remote::problem::printable;
use crate::remote::session::few_names;
use crate::store::LARGEST;

#[derive(Deserialize)]
struct SaidSegment {
    id: Hex<16>,
    rows: u32,
    #[serde(default)]
    deleted: Vec<u32>,
    #[serde(default)]
    blobs: IndexMap<String, u64>,
}

#[derive(Deserialize)]
struct Said {
    name: String,
    version: u64,
    head: Hex<32>,
    meta: String,
    segments: Vec<SaidSegment>,
    #[serde(default)]
    attachments: BTreeMap<String, u64>,
    query_version: Option<u64>,
    evaluation: Option<Hex<32>>,
    #[serde(default)]
    fetch_version: u64,
}

impl Listing {
    /// Of the body of an answer. Segments that are as they were `before` are the same objects again.
    pub fn read(body: &[u8], name: &str, server: &str, before: Option<&Self>) -> Result<Self> {
        let read = |()| json::read(body).map_err(|error| error.to_string());
        let said = few_names(body).and_then(read);
        said.and_then(|said| Self::checked(said, name, before)).map_err(|why| {
            Error::server(format!(
                "{server} describes collection \"{name}\" in a way that this ciphervec does not understand ({}). Check the versions on \
                 both sides.",
                printable(&why, 200)
            ))
        })
    }

    fn checked(
        said: Said,
        name: &str,
        before: Option<&Self>,
    ) -> core::result::Result<Self, String> {
        if said.name != name {
            return Err("it is about another one".to_owned());
        }
        let mut segments = Segments::with_capacity(said.segments.len());
        for SaidSegment { id, rows, deleted, blobs } in said.segments {
            let ascends = deleted.windows(2).all(|pair| pair[0] < pair[1]);
            if !ascends || deleted.last().is_some_and(|last| *last >= rows) {
                return Err("deleted rows are not ascending numbers of rows".to_owned());
            }
            let segment = StoredSegment { id: SegmentId(id.0), rows, blobs, deleted };
            let known = before.and_then(|before| before.segments.get(&segment.id));
            let segment = known
                .filter(|known| ***known == segment)
                .cloned()
                .unwrap_or_else(|| Arc::new(segment));
            if segments.insert(segment.id, segment).is_some() {
                return Err("a segment occurs twice".to_owned());
            }
        }
        let counts =
            segments.values().flat_map(|one| one.blobs.values()).chain(said.attachments.values());
        if counts.chain([&said.version]).any(|count| *count >= LARGEST) {
            return Err("a length or the version is too large".to_owned());
        }
        Ok(Listing {
            version: said.version,
            head: said.head.to_string(),
            meta: BASE64_STANDARD.decode(said.meta).map_err(|error| error.to_string())?.into(),
            segments,
            attachments: said.attachments,
            query_version: said.query_version.unwrap_or(1),
            evaluation: said.evaluation.map(|digest| digest.0),
            fetch_version: said.fetch_version,
        })
    }
}

/// What is pinned of a description: it never changes, but for the keys when the owner gives it others. Nothing, if it does not parse;
/// it is refused elsewhere then.
pub fn public_parameters(meta: &[u8]) -> Option<(String, String)> {
    #[derive(Deserialize)]
    struct Parameters {
        spec: String,
        key_id: String,
    }
    let Parameters { spec, key_id } = json::read(meta).ok()?;
    Some((spec, key_id))
}
