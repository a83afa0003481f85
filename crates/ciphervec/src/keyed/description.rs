//! The public description of a table: what a client needs to ask for keys and to check buckets. Whoever believes its
//! *fingerprint* can be shown no other record under a key, and no other number of records.

use super::geometry::{Geometry, SEALED};
use super::hash::{Digest, KeyHash, TAG_BYTES};
use super::tree::{self, Node};
use crate::decode::{DecodeError, Reader};
use crate::error::{Error, Result};
use crate::protect::error::EnvelopeError;

/// The first bytes of a description, and so of a table's file.
pub const MAGIC: &[u8; 8] = b"CVKEYTAB";
/// The format version of both.
pub const VERSION: u32 = 1;
const WHAT: &str = "a keyed table's description";
/// Bytes before the cap.
const HEAD: usize = 8 + 4 + 16 + 1 + 32 + 8 + 4 + 1 + 4 + 4;
const AUTHENTICATOR: usize = 32;

/// What is public of a table.
#[derive(Clone)]
pub struct Description {
    pub(super) name: [u8; 16],
    /// The seed of the hash of keys; none where it is an owner's secret.
    pub(super) seed: Option<KeyHash>,
    pub(super) records: usize,
    pub(super) geometry: Geometry,
    pub(super) attempt: u32,
    pub(super) cap: Vec<Node>,
    /// What an owner who sealed the records says of all the rest.
    pub(super) authenticator: Option<[u8; AUTHENTICATOR]>,
}

impl Description {
    /// The most bytes that one has.
    pub const MAX_BYTES: usize = HEAD + tree::CAP * tree::NODE_BYTES + AUTHENTICATOR;

    /// What the table is called: another name for each that was built.
    pub fn name(&self) -> &[u8; 16] {
        &self.name
    }

    /// Its sizes.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Records in it.
    pub fn records(&self) -> usize {
        self.records
    }

    /// The hash of keys; none where it is an owner's secret.
    pub fn seed(&self) -> Option<&KeyHash> {
        self.seed.as_ref()
    }

    /// The bucket of each part that a key's record may be in.
    pub fn buckets(&self, digest: &Digest) -> impl Iterator<Item = usize> {
        let (attempt, Geometry { parts, buckets, .. }) = (self.attempt, self.geometry);
        let digest = *digest;
        (0..parts).map(move |part| digest.bucket(part, attempt, buckets))
    }

    /// Whether these bytes are that bucket of a part, as the publisher wrote it.
    pub fn is_bucket(&self, part: usize, bucket: usize, bytes: &[u8]) -> bool {
        let number = part * self.geometry.buckets + bucket;
        let path = self.geometry.path();
        if bytes.len() != self.geometry.bucket() {
            return false;
        }
        let (slots, hashes) = bytes.split_at(self.geometry.slot_bytes());
        let top = tree::climb(tree::leaf(&self.name, number, slots), number, hashes);
        self.cap.get(number >> path) == Some(&top)
    }

    /// The body beside a tag in a bucket, in a time that does not depend on where or whether it is there; zeros and false
    /// where there is none.
    pub fn body(&self, digest: &Digest, bucket: &[u8]) -> (Vec<u8>, bool) {
        let slots = bucket.get(..self.geometry.slot_bytes()).unwrap_or_default();
        let mut body = vec![0; self.geometry.body()];
        let mut found = 0u8;
        for slot in slots.chunks_exact(self.geometry.slot()) {
            let (tag, held) = slot.split_at(TAG_BYTES);
            let differs = tag.iter().zip(&digest.tag).fold(0u8, |or, (a, b)| or | (a ^ b));
            let mask = core::hint::black_box(u8::from(differs == 0).wrapping_neg());
            found |= mask;
            body.iter_mut().zip(held).for_each(|(out, byte)| *out |= byte & mask);
        }
        (body, found != 0)
    }

    /// The content of a body that was not sealed; none if it says that it is longer than the table's records.
    pub fn content(&self, body: &[u8]) -> Option<Vec<u8>> {
        if self.geometry.content == 0 {
            return Some(Vec::new());
        }
        let (length, rest) = body.split_first_chunk()?;
        Some(rest.get(..usize::from(u16::from_le_bytes(*length)))?.to_vec())
    }

    /// A hash of all of it: what a publisher gives out beside the table.
    pub fn fingerprint(&self) -> [u8; 32] {
        *blake3::Hasher::new_derive_key("ciphervec v1 keyed-table")
            .update(&self.to_bytes())
            .finalize()
            .as_bytes()
    }

    /// What [`Self::authenticator`] is about: everything before it.
    pub fn authenticated(&self) -> Vec<u8> {
        let Geometry { content, parts, buckets, .. } = self.geometry;
        let mut out = Vec::with_capacity(self.byte_len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.name);
        out.push(u8::from(self.seed.is_none()));
        out.extend_from_slice(self.seed.as_ref().map_or(&[0; 32], |seed| seed.bytes()));
        out.extend_from_slice(&(self.records as u64).to_le_bytes());
        out.extend_from_slice(&(content as u32).to_le_bytes());
        out.push(parts as u8);
        out.extend_from_slice(&(buckets as u32).to_le_bytes());
        out.extend_from_slice(&self.attempt.to_le_bytes());
        self.cap.iter().for_each(|node| out.extend_from_slice(node));
        out
    }

    /// What the owner who sealed the records says of the rest; none where nobody sealed them.
    pub fn authenticator(&self) -> Option<&[u8; AUTHENTICATOR]> {
        self.authenticator.as_ref()
    }

    /// Its bytes, in which every length follows from the numbers before it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.authenticated();
        out.extend_from_slice(self.authenticator.as_ref().map_or(&[], |bytes| &bytes[..]));
        out
    }

    pub(super) fn byte_len(&self) -> usize {
        HEAD + self.cap.len() * tree::NODE_BYTES + self.authenticator.map_or(0, |_| AUTHENTICATOR)
    }

    /// Reads what [`Self::to_bytes`] gives.
    ///
    /// # Errors
    /// [`EnvelopeError::Decode`], naming the field, for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(WHAT, bytes);
        let read = Self::read(&mut reader).and_then(|description| {
            reader.finish()?;
            Ok(description)
        });
        read.map_err(|error| Error::Envelope(EnvelopeError::Decode(error)))
    }

    /// The same where a file goes on behind it.
    pub(super) fn from_start(bytes: &[u8]) -> Result<Self> {
        let read = Self::read(&mut Reader::new(WHAT, bytes));
        read.map_err(|error| Error::Envelope(EnvelopeError::Decode(error)))
    }

    fn read(reader: &mut Reader<'_>) -> core::result::Result<Self, DecodeError> {
        reader.header(MAGIC, VERSION)?;
        let name = reader.array()?;
        let at = reader.offset();
        let sealed = match reader.u8()? {
            0 => false,
            1 => true,
            other => return Err(reader.field("whether it is sealed", at, "0 or 1", other)),
        };
        let at = reader.offset();
        let seed: [u8; 32] = reader.array()?;
        if sealed && seed != [0; 32] {
            return Err(reader.field("the seed", at, "zeros, as it is sealed", "another"));
        }
        let at = reader.offset();
        let records = reader.u64()?;
        let (content, parts) = (reader.u32()? as usize, usize::from(reader.u8()?));
        let buckets = reader.u32()? as usize;
        let geometry = Geometry { content, sealed, parts, buckets }
            .check()
            .map_err(|error| reader.field("its size", at, "that of a table", error))?;
        let most = geometry.all_buckets() * geometry.slots();
        if records > most as u64 {
            return Err(reader.field(
                "its number of records",
                at,
                format!("at most {most}"),
                records,
            ));
        }
        let attempt = reader.u32()?;
        let nodes = tree::cap_len(geometry.all_buckets());
        reader.need_items(nodes, tree::NODE_BYTES)?;
        let cap = (0..nodes).map(|_| reader.array()).collect::<core::result::Result<_, _>>()?;
        let authenticator = sealed.then(|| reader.array()).transpose()?;
        Ok(Description {
            name,
            seed: (!sealed).then(|| KeyHash::new(seed)),
            records: records as usize,
            geometry,
            attempt,
            cap,
            authenticator,
        })
    }

    /// Bytes that sealing adds to a record.
    pub const SEALED: usize = SEALED;
}
