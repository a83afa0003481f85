//! Index file: an index in one block of bytes, for whoever keeps it. Any reader can tell that it is whole; that its owner made it, and which
//! rows were removed, only the owner's key can.
//!
//! Little-endian: `CVIX` | version u32 | BLAKE2b-256 of the rest 32 | length of the header u64 | header (JSON: key id, length of the
//! server's half, of each segment's sidecar and which of its rows are deleted, lengths of the sealed key pair and of the state) | the
//! server's half | the sidecars | the sealed key pair of a scheme that has one | the state. Version 1 had no key pairs, 2 no states.
//!
//! In the state the description is BLAKE3 of the server's part and the key pair that of the sealed one; a leaf has id, number of
//! deleted rows, these, and the BLAKE3 of the row index; all else is zero. There is none in mode `open`.

use std::borrow::Cow;

use blake2::digest::Update;
use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest};
use ciphervec_owner::protect::state::{SegmentFacts, StateRecord, digest, leaf};
use ciphervec_owner::search::Owner;
use ciphervec_owner::{KeyId, SegmentId};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::json;

const MAGIC: [u8; 4] = *b"CVIX";
const VERSION: u32 = 3;
/// Bytes before the header.
const PREFIX: usize = 48;
const NONE: [u8; 32] = [0; 32];

/// What an owner needs of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexPart {
    /// Which.
    pub id: SegmentId,
    /// Its ids and norms, sealed.
    pub sidecar: Vec<u8>,
    /// Rows that were removed, as they went.
    pub deleted: Vec<u32>,
}

/// What is kept of an index beside the server's half.
#[derive(Clone, Debug, Default)]
pub struct IndexFile {
    /// Of the owner's key.
    pub key_id: String,
    /// In the order of the server's segments.
    pub parts: Vec<IndexPart>,
    /// Sealed; empty where the scheme has none.
    pub key_pair: Vec<u8>,
    /// What the owner says of all of it; empty in mode `open` and in what release 0.1 wrote.
    pub state: Vec<u8>,
}

/// What comes first.
#[derive(Serialize, Deserialize)]
struct Header<'a> {
    key_id: Cow<'a, str>,
    server: usize,
    segments: Vec<PartHeader<'a>>,
    #[serde(default)]
    key_pair: usize,
    #[serde(default)]
    state: usize,
}

#[derive(Serialize, Deserialize)]
struct PartHeader<'a> {
    sidecar: usize,
    deleted: Cow<'a, [u32]>,
}

impl IndexFile {
    /// One block of bytes, with the server's half of this index. An owner who is here says what it holds; else it is what was last said.
    ///
    /// # Errors
    /// A key that can't be used.
    pub fn to_bytes(&self, server: &[u8], owner: Option<&Owner>) -> Result<Vec<u8>> {
        let state = match owner {
            Some(owner) => Cow::from(owner.seal_state(&self.record(server, owner.key_id()))?),
            None => Cow::from(&self.state),
        };
        let segments = self.parts.iter().map(|part| PartHeader {
            sidecar: part.sidecar.len(),
            deleted: sorted(&part.deleted).into(),
        });
        let header = Header {
            key_id: Cow::from(&self.key_id),
            server: server.len(),
            segments: segments.collect(),
            key_pair: self.key_pair.len(),
            state: state.len(),
        };
        let header = serde_json::to_string(&header)
            .map_err(|error| Error::Input(format!("an index file can't be written: {error}.")))?;
        let mut blobs = vec![header.as_bytes(), server];
        blobs.extend(self.parts.iter().map(|part| part.sidecar.as_slice()));
        blobs.extend([self.key_pair.as_slice(), &state]);
        let mut out =
            Vec::with_capacity(PREFIX + blobs.iter().map(|blob| blob.len()).sum::<usize>());
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(NONE);
        out.extend((header.len() as u64).to_le_bytes());
        blobs.iter().for_each(|blob| out.extend_from_slice(blob));
        let sum = checksum(&out[40..]);
        out[8..40].copy_from_slice(&sum);
        Ok(out)
    }

    /// Takes a file apart. `read` makes an index of the server's half, and says the ids of its segments.
    ///
    /// # Errors
    /// Bytes that are no index, truncated or altered, or of a later release; what `read` raises.
    pub fn from_bytes<S, E: From<Error>>(
        data: &[u8],
        read: impl FnOnce(&[u8]) -> core::result::Result<(S, Vec<SegmentId>), E>,
    ) -> core::result::Result<(Self, S), E> {
        let (header, mut body) = taken_apart(data)?;
        let (server, ids) = read(take(&mut body, header.server)?)?;
        if ids.len() != header.segments.len() {
            let (has, says) = (ids.len(), header.segments.len());
            return Err(Error::Corrupt(format!(
                "the header of these index bytes names {says} segments, and the server's half has {has}."
            ))
            .into());
        }
        let mut parts = Vec::with_capacity(ids.len());
        for (id, part) in ids.into_iter().zip(header.segments) {
            let sidecar = take(&mut body, part.sidecar)?.to_vec();
            parts.push(IndexPart { id, sidecar, deleted: part.deleted.into_owned() });
        }
        let key_pair = take(&mut body, header.key_pair)?.to_vec();
        let state = take(&mut body, header.state)?.to_vec();
        if !body.is_empty() {
            let message = format!("{} bytes follow the end of the index.", body.len());
            return Err(Error::Corrupt(message).into());
        }
        Ok((Self { key_id: header.key_id.into_owned(), parts, key_pair, state }, server))
    }

    /// Whether its owner has said all this, with the server's half beside it; false where nothing is said.
    ///
    /// # Errors
    /// Where the owner has said something else, or another key did.
    pub fn is_authenticated(&self, server: &[u8], owner: &Owner) -> Result<bool> {
        if self.state.is_empty() {
            return Ok(false);
        }
        let said = owner.open_state(&self.state)?;
        if said == self.record(server, said.key) {
            return Ok(true);
        }
        Error::corrupt(format!(
            "the index {:?} is not the one that its owner saved: segments were left out, replaced or reordered, or rows removed or \
             brought back. Use a copy.",
            owner.spec().collection()
        ))
    }

    /// What an owner authenticates, in the fields of a collection's state: all bytes, and which rows are gone.
    fn record(&self, server: &[u8], key: KeyId) -> StateRecord {
        let blobs = ["sidecar".to_owned()];
        let leaves = self.parts.iter().flat_map(|part| {
            let deleted = sorted(&part.deleted);
            let digests = [(blobs[0].clone(), *blake3::hash(&part.sidecar).as_bytes())];
            leaf(&SegmentFacts {
                id: &part.id.0,
                rows: deleted.len() as u32,
                deleted: &deleted,
                blobs: &blobs,
                digests: &digests,
            })
        });
        StateRecord {
            key,
            origin: [0; 16],
            lineage: [0; 16],
            begun: 0,
            sequence: 0,
            epoch: 0,
            segments: self.parts.len() as u32,
            segments_digest: digest(&leaves.collect::<Vec<_>>()),
            description: *blake3::hash(server).as_bytes(),
            evaluation: NONE,
            key_pair: *blake3::hash(&self.key_pair).as_bytes(),
            ancestors: Vec::new(),
            aside: Vec::new(),
            routing: NONE,
            consumed: NONE,
            quarantine: Vec::new(),
            signed: None,
        }
    }
}

fn sorted(rows: &[u32]) -> Vec<u32> {
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    rows
}

/// Of the length of the header and all that follows.
fn checksum(rest: &[u8]) -> [u8; 32] {
    let mut hasher = Blake2b::<U32>::new();
    Update::update(&mut hasher, rest);
    hasher.finalize().into()
}

/// The header of whole bytes, and what follows it.
fn taken_apart(data: &[u8]) -> Result<(Header<'_>, &[u8])> {
    let Some((prefix, body)) = data.split_first_chunk::<PREFIX>() else {
        return Error::corrupt(format!(
            "an index is at least {PREFIX} bytes, got {}. The bytes are truncated.",
            data.len()
        ));
    };
    let (magic, rest) = prefix.split_at(4);
    let (version, rest) = rest.split_at(4);
    let (expected, length) = rest.split_at(32);
    if magic != MAGIC {
        return Error::corrupt(format!(
            "an index starts with \"CVIX\", got \"{}\". These bytes are something else.",
            magic.escape_ascii()
        ));
    }
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |n: u64, byte| n << 8 | u64::from(*byte));
    let version = number(version);
    if version > u64::from(VERSION) {
        return Err(Error::Version(format!(
            "index format {version}; this ciphervec reads up to {VERSION}. Upgrade ciphervec."
        )));
    }
    let length = usize::try_from(number(length)).ok().filter(|length| *length <= body.len());
    let (Some(length), true) = (length, version > 0 && checksum(&data[40..]) == expected) else {
        return Error::corrupt(
            "the checksum of these index bytes does not match: they are truncated or altered.",
        );
    };
    let (header, body) = body.split_at(length);
    let header = json::read(header).map_err(|error| {
        Error::Corrupt(format!("the header of these index bytes does not parse: {error}."))
    })?;
    Ok((header, body))
}

/// The next bytes of the body.
fn take<'a>(body: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let Some((taken, rest)) = body.split_at_checked(length) else {
        return Error::corrupt(format!(
            "the header of these index bytes asks for {length} bytes more, and {} are left.",
            body.len()
        ));
    };
    *body = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(server: &[u8]) -> Result<(Vec<u8>, Vec<SegmentId>)> {
        Ok((server.to_vec(), vec![SegmentId([1; 16]), SegmentId([2; 16])]))
    }

    fn file() -> IndexFile {
        let part = |id, sidecar: &[u8], deleted: &[u32]| IndexPart {
            id: SegmentId([id; 16]),
            sidecar: sidecar.to_vec(),
            deleted: deleted.to_vec(),
        };
        IndexFile {
            key_id: "00ff".to_owned(),
            parts: vec![part(1, b"first", &[7, 3]), part(2, b"", &[])],
            key_pair: b"pair".to_vec(),
            state: Vec::new(),
        }
    }

    #[test]
    fn bytes_are_those_that_releases_before_wrote() {
        let header = br#"{"key_id":"00ff","server":4,"segments":[{"sidecar":5,"deleted":[3,7]},{"sidecar":0,"deleted":[]}],"key_pair":4,"state":0}"#;
        let bytes = file().to_bytes(b"half", None).unwrap();
        assert_eq!(&bytes[..8], b"CVIX\x03\0\0\0");
        assert_eq!(bytes[40..48], (header.len() as u64).to_le_bytes());
        assert_eq!(&bytes[48..], [&header[..], b"halffirstpair"].concat());
        let (back, server) = IndexFile::from_bytes(&bytes, read).unwrap();
        assert_eq!(
            (server.as_slice(), back.parts[0].deleted.as_slice()),
            (&b"half"[..], &[3, 7][..])
        );
        assert_eq!(back.to_bytes(&server, None).unwrap(), bytes);
    }

    #[test]
    fn bytes_of_strangers_are_refused_and_never_believed() {
        let bytes = file().to_bytes(b"half", None).unwrap();
        for end in 0..bytes.len() {
            assert!(matches!(IndexFile::from_bytes(&bytes[..end], read), Err(Error::Corrupt(_))));
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x80;
            assert!(IndexFile::from_bytes(&changed, read).is_err(), "byte {at}");
        }
        // Lengths that a checksum made anew covers.
        for says in ["4294967295", "18446744073709551615", "-1", "5", "3"] {
            let header = String::from_utf8(bytes[48..bytes.len() - 13].to_vec()).unwrap();
            let header = header.replace("\"sidecar\":5", &format!("\"sidecar\":{says}"));
            let rest = [header.as_bytes(), b"halffirstpair"].concat();
            let rest = [&(header.len() as u64).to_le_bytes()[..], &rest].concat();
            let forged = [&b"CVIX\x03\0\0\0"[..], &checksum(&rest), &rest].concat();
            let refused = IndexFile::from_bytes(&forged, read);
            assert_eq!(refused.is_err(), says != "5", "{says}");
        }
        let other = |server: &[u8]| Ok::<_, Error>((server.to_vec(), Vec::new()));
        assert!(IndexFile::from_bytes(&bytes, other).is_err());
    }
}
