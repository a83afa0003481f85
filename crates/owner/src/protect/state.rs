//! What a collection holds after one of its owner's commits, as bytes that only the owner's key could have made. Key owner
//! only.
//!
//! Little-endian: `CVSTATES` | version u32 | key id 8 | origin 16 | lineage 16 | lineage begun, seconds since 1970, u64 | sequence
//! u64 | epoch u32 | segments u32 | digests of segments, description, evaluation keys and key pair, 32 each | number of ancestors
//! u32 | the latest of them, 16 each, the youngest last | number of segments with rows set aside u32 | each: segment 16, number
//! of rows u32 (0: all of them), rows u32 | from version 2 on the digest of the routing table 32 | from version 3 on the digest of the
//! consumed segments' list 32 | number of segments in quarantine u32 | each 16 | from version 4 on fingerprint of the author 16 |
//! changes of the member list before this state u32 | MAC 32: BLAKE3 of all before under a key derived for this | in version 4 the
//! author's signature 64 over all before. The lowest version is written that has room for what there is.
//!
//! The words of a segment are not covered: a server may take deleted rows out of them.
//!
//! The origin is the incarnation, or drawn at the upgrade of a collection without one. The digest of segments hashes a leaf of 32
//! bytes for each, in order: a hash of id, rows, deleted rows, and the names of its blobs, with the BLAKE3 of `sidecar`, `tags`
//! and `wrap`. The others are BLAKE3 of the bytes, zeros where there is no key pair. At most 256 ancestors are named. Segments
//! all of whose rows are set aside are not among those counted; segments beyond the counted were added since. The MAC's context
//! is `ciphervec v1 state`, with the index's binding; the author signs `ciphervec v1 state-signature`, a zero byte and all
//! before. A state's name is half of a hash of its bytes.

use crate::decode::Reader;
use crate::protect::aead::EnvelopeError;
use ciphervec_he_secret::keys::Secret;
use ciphervec_he_secret::wire::KeyId;

const MAGIC: &[u8; 8] = b"CVSTATES";
/// Written where the collection has members.
const VERSION: u32 = 4;
/// Written where somebody consumed segments, or some are in quarantine.
const HELD: u32 = 3;
/// Written where nothing was consumed and nothing is in quarantine.
const ROUTED: u32 = 2;
/// Written where there is no routing table either.
const UNROUTED: u32 = 1;
const WHAT: &str = "an authenticated state";
const MAC: usize = 32;
const SIGNATURE: usize = 64;
/// Ancestors that a record names: a client that was away for so many states can tell whether one descends from what it saw.
pub const ANCESTORS: usize = 256;

/// The name of a state: half of a hash of its bytes.
pub type StateDigest = [u8; 16];

/// Rows of a segment, or all of them, that the owner does not count although they are there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetAside {
    /// The segment.
    pub segment: [u8; 16],
    /// Its rows, ascending; empty: the whole segment, which is not among those counted.
    pub rows: Vec<u32>,
}

/// Who made a state, in a collection with members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateSigner {
    /// The member's fingerprint.
    pub author: [u8; 16],
    /// Changes of the member list that were in force before this state.
    pub changes: u32,
}

/// What the owner says of a collection with each of its commits. Nothing in it is secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateRecord {
    /// The key that says so.
    pub key: KeyId,
    /// What tells the collection from all others, whatever happens to it: its incarnation, where it has one.
    pub origin: [u8; 16],
    /// Drawn anew when the owner accepts a restore.
    pub lineage: [u8; 16],
    /// When that was, or the first state, in seconds since 1970.
    pub begun: u64,
    /// Number of this state.
    pub sequence: u64,
    /// Epoch of the query key.
    pub epoch: u32,
    /// Segments covered: the first so many of the collection, without those set aside.
    pub segments: u32,
    /// [`digest`] of their leaves.
    pub segments_digest: [u8; 32],
    /// BLAKE3 of the description.
    pub description: [u8; 32],
    /// BLAKE3 of the evaluation keys.
    pub evaluation: [u8; 32],
    /// BLAKE3 of the sealed key pair; zero where there is none.
    pub key_pair: [u8; 32],
    /// The states before, the youngest last; at most [`ANCESTORS`].
    pub ancestors: Vec<StateDigest>,
    /// What is there and does not count.
    pub aside: Vec<SetAside>,
    /// BLAKE3 of the sealed routing table; zero where there is none.
    pub routing: [u8; 32],
    /// BLAKE3 of the list of consumed segments; zero where there is none.
    pub consumed: [u8; 32],
    /// Segments that failed a check and are not used until they are released.
    pub quarantine: Vec<[u8; 16]>,
    /// Who signs it; nothing where the collection has no members.
    pub signed: Option<StateSigner>,
}

/// One segment as a state covers it: identity, deletions, the blobs it has, and the digests of those that are read when a
/// collection is opened.
#[derive(Clone, Copy, Debug)]
pub struct SegmentFacts<'a> {
    /// The segment's id.
    pub id: &'a [u8; 16],
    /// Rows, deleted ones included.
    pub rows: u32,
    /// Deleted rows, ascending.
    pub deleted: &'a [u32],
    /// Names of its blobs, in any order.
    pub blobs: &'a [String],
    /// BLAKE3 of those blobs that are covered, by name.
    pub digests: &'a [(String, [u8; 32])],
}

/// The hash that stands for a segment.
pub fn leaf(facts: &SegmentFacts<'_>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 state-segment");
    hasher.update(facts.id).update(&facts.rows.to_le_bytes());
    hasher.update(&(facts.deleted.len() as u32).to_le_bytes());
    facts.deleted.iter().for_each(|row| {
        hasher.update(&row.to_le_bytes());
    });
    let mut names: Vec<_> = facts.blobs.iter().collect();
    names.sort();
    hasher.update(&(names.len() as u32).to_le_bytes());
    for name in names {
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        let digest = facts.digests.iter().find(|(of, _)| of == name);
        hasher.update(&[u8::from(digest.is_some())]);
        hasher.update(digest.map_or(&[][..], |(_, digest)| digest));
    }
    *hasher.finalize().as_bytes()
}

/// The hash of segments' leaves, 32 bytes each, in their order.
pub fn digest(leaves: &[u8]) -> [u8; 32] {
    blake3::derive_key("ciphervec v1 state-segments", leaves)
}

/// The name of a sealed state.
pub fn name(sealed: &[u8]) -> StateDigest {
    let mut name = [0; 16];
    name.copy_from_slice(&blake3::derive_key("ciphervec v1 state-name", sealed)[..16]);
    name
}

/// The bytes of a state that has an author, and the signature over them; nothing for another state.
pub fn split(sealed: &[u8]) -> Option<(&[u8], &[u8; SIGNATURE])> {
    let version = Reader::new(WHAT, sealed).header(MAGIC, VERSION).ok()?;
    if version < VERSION { None } else { sealed.split_last_chunk() }
}

impl StateRecord {
    /// The bytes, authenticated under `key`. Those of a state with an author lack the signature, which is to follow.
    pub fn seal(&self, key: &Secret) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let version = if self.signed.is_some() {
            VERSION
        } else if self.consumed != [0; 32] || !self.quarantine.is_empty() {
            HELD
        } else if self.routing != [0; 32] {
            ROUTED
        } else {
            UNROUTED
        };
        out.extend(version.to_le_bytes());
        out.extend(self.key.0);
        out.extend(self.origin);
        out.extend(self.lineage);
        out.extend(self.begun.to_le_bytes());
        out.extend(self.sequence.to_le_bytes());
        out.extend(self.epoch.to_le_bytes());
        out.extend(self.segments.to_le_bytes());
        for digest in [self.segments_digest, self.description, self.evaluation, self.key_pair] {
            out.extend(digest);
        }
        let latest = self.ancestors.len().saturating_sub(ANCESTORS);
        let ancestors = self.ancestors.get(latest..).unwrap_or_default();
        out.extend((ancestors.len() as u32).to_le_bytes());
        ancestors.iter().for_each(|name| out.extend(name));
        out.extend((self.aside.len() as u32).to_le_bytes());
        for one in &self.aside {
            out.extend(one.segment);
            out.extend((one.rows.len() as u32).to_le_bytes());
            one.rows.iter().for_each(|row| out.extend(row.to_le_bytes()));
        }
        if version >= ROUTED {
            out.extend(self.routing);
        }
        if version >= HELD {
            out.extend(self.consumed);
            out.extend((self.quarantine.len() as u32).to_le_bytes());
            self.quarantine.iter().for_each(|segment| out.extend(segment));
        }
        if let Some(StateSigner { author, changes }) = &self.signed {
            out.extend(author);
            out.extend(changes.to_le_bytes());
        }
        let mac = blake3::keyed_hash(key.expose(), &out);
        out.extend(mac.as_bytes());
        out
    }

    /// The public name of the key that `sealed` says it was made with. Says nothing of its truth.
    ///
    /// # Errors
    /// [`EnvelopeError::Decode`] for bytes that are no state.
    pub fn key_of(sealed: &[u8]) -> Result<KeyId, EnvelopeError> {
        let mut reader = Reader::new(WHAT, sealed);
        reader.header(MAGIC, VERSION)?;
        Ok(KeyId(reader.array()?))
    }

    /// Reads what [`Self::seal`] wrote, if it was under `key`. The signature that follows where it has an author is not verified:
    /// that takes the list of members.
    ///
    /// # Errors
    /// [`EnvelopeError::Unauthentic`] for another key or changed bytes, [`EnvelopeError::Decode`] for bytes that are no state.
    pub fn open(key: &Secret, sealed: &[u8]) -> Result<Self, EnvelopeError> {
        let mut reader = Reader::new(WHAT, sealed);
        reader.header(MAGIC, VERSION)?;
        let unauthentic = EnvelopeError::Unauthentic { what: WHAT };
        let unsigned = split(sealed).map_or(sealed, |(unsigned, _)| unsigned);
        let Some((body, mac)) = unsigned.split_last_chunk::<MAC>() else { return Err(unauthentic) };
        // Hashes compare in constant time.
        if blake3::keyed_hash(key.expose(), body) != blake3::Hash::from(*mac) {
            return Err(unauthentic);
        }
        let mut reader = Reader::new(WHAT, body);
        let version = reader.header(MAGIC, VERSION)?;
        let key = KeyId(reader.array()?);
        let (origin, lineage) = (reader.array()?, reader.array()?);
        let (begun, sequence) = (reader.u64()?, reader.u64()?);
        let (epoch, segments) = (reader.u32()?, reader.u32()?);
        let (segments_digest, description) = (reader.array()?, reader.array()?);
        let (evaluation, key_pair) = (reader.array()?, reader.array()?);
        let count = reader.u32()? as usize;
        reader.need_items(count, 16)?;
        let ancestors = (0..count).map(|_| reader.array()).collect::<Result<_, _>>()?;
        let count = reader.u32()? as usize;
        reader.need_items(count, 20)?;
        let mut aside = Vec::with_capacity(count);
        for _ in 0..count {
            let segment = reader.array()?;
            let rows = reader.u32()? as usize;
            reader.need_items(rows, 4)?;
            let rows = (0..rows).map(|_| reader.u32()).collect::<Result<_, _>>()?;
            aside.push(SetAside { segment, rows });
        }
        let routing = if version >= ROUTED { reader.array()? } else { [0; 32] };
        let (mut consumed, mut quarantine) = ([0; 32], Vec::new());
        if version >= HELD {
            consumed = reader.array()?;
            let count = reader.u32()? as usize;
            reader.need_items(count, 16)?;
            quarantine = (0..count).map(|_| reader.array()).collect::<Result<_, _>>()?;
        }
        let signed = match version >= VERSION {
            true => Some(StateSigner { author: reader.array()?, changes: reader.u32()? }),
            false => None,
        };
        reader.finish()?;
        Ok(StateRecord {
            key,
            origin,
            lineage,
            begun,
            sequence,
            epoch,
            segments,
            segments_digest,
            description,
            evaluation,
            key_pair,
            ancestors,
            aside,
            routing,
            consumed,
            quarantine,
            signed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphervec_he_secret::keys::{MasterKey, Purpose};

    fn key(byte: u8) -> Secret {
        MasterKey::from_bytes([byte; 32]).derive(Purpose::State, &[b"faces"])
    }

    fn record() -> StateRecord {
        StateRecord {
            key: KeyId([3; 8]),
            origin: [1; 16],
            lineage: [2; 16],
            begun: 1_700_000_000,
            sequence: 9,
            epoch: 4,
            segments: 2,
            segments_digest: digest(&[5; 64]),
            description: [6; 32],
            evaluation: [7; 32],
            key_pair: [0; 32],
            ancestors: (0..9).map(|at| [at; 16]).collect(),
            aside: vec![
                SetAside { segment: [8; 16], rows: vec![] },
                SetAside { segment: [9; 16], rows: vec![0, 4] },
            ],
            routing: [0; 32],
            consumed: [0; 32],
            quarantine: Vec::new(),
            signed: None,
        }
    }

    fn routed() -> StateRecord {
        StateRecord { routing: [10; 32], ..record() }
    }

    fn held() -> StateRecord {
        StateRecord { quarantine: vec![[11; 16], [12; 16]], ..record() }
    }

    #[test]
    fn a_state_comes_back_under_its_key_alone() {
        let sealed = record().seal(&key(1));
        assert_eq!(StateRecord::open(&key(1), &sealed).unwrap(), record());
        let other = routed().seal(&key(1));
        assert_eq!(StateRecord::open(&key(1), &other).unwrap(), routed());
        let third = held().seal(&key(1));
        assert_eq!(StateRecord::open(&key(1), &third).unwrap(), held());
        let fourth = StateRecord { consumed: [13; 32], ..routed() };
        assert_eq!(StateRecord::open(&key(1), &fourth.seal(&key(1))).unwrap(), fourth);
        let signed = Some(StateSigner { author: [14; 16], changes: 3 });
        let fifth = StateRecord { signed, ..record() };
        let unsigned = fifth.seal(&key(1));
        let fifth_bytes = [&unsigned[..], &[15; 64]].concat();
        assert_eq!(StateRecord::open(&key(1), &fifth_bytes).unwrap(), fifth);
        assert_eq!(split(&fifth_bytes), Some((&unsigned[..], &[15; 64])));
        assert_eq!((sealed[8], other[8], third[8], unsigned[8]), (1, 2, 3, 4));
        assert!(StateRecord::open(&key(1), &unsigned).is_err(), "its end is no signature");
        assert_eq!(StateRecord::key_of(&sealed).unwrap(), KeyId([3; 8]));
        assert!(matches!(
            StateRecord::open(&key(2), &sealed),
            Err(EnvelopeError::Unauthentic { .. })
        ));
        let other = MasterKey::from_bytes([1; 32]).derive(Purpose::State, &[b"other"]);
        assert!(StateRecord::open(&other, &sealed).is_err());
    }

    #[test]
    fn no_bit_of_a_state_can_be_changed_and_no_byte_cut_or_added() {
        let sealed = held().seal(&key(1));
        for at in 0..sealed.len() * 8 {
            let mut bytes = sealed.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            assert!(StateRecord::open(&key(1), &bytes).is_err(), "bit {at}");
        }
        for length in 0..sealed.len() {
            assert!(StateRecord::open(&key(1), &sealed[..length]).is_err(), "{length} bytes");
        }
        assert!(StateRecord::open(&key(1), &[&sealed[..], &[0]].concat()).is_err());
    }

    #[test]
    fn ancestors_are_bounded() {
        let mut long = record();
        long.ancestors = (0..300u32)
            .map(|at| {
                let mut name = [0; 16];
                name[..4].copy_from_slice(&at.to_le_bytes());
                name
            })
            .collect();
        let read = StateRecord::open(&key(1), &long.seal(&key(1))).unwrap();
        assert_eq!(read.ancestors, long.ancestors[300 - ANCESTORS..]);
    }

    #[test]
    fn everything_about_a_segment_is_in_its_leaf() {
        let blobs = ["rows".to_owned(), "sidecar".to_owned()];
        let digests = [("sidecar".to_owned(), [1; 32])];
        let facts = SegmentFacts {
            id: &[1; 16],
            rows: 5,
            deleted: &[1, 3],
            blobs: &blobs,
            digests: &digests,
        };
        let more = [blobs.to_vec(), vec!["wrap".to_owned()]].concat();
        let swapped = [("sidecar".to_owned(), [2; 32])];
        let renamed = ["cols".to_owned(), "sidecar".to_owned()];
        let turned: Vec<_> = blobs.iter().rev().cloned().collect();
        for other in [
            SegmentFacts { id: &[2; 16], ..facts },
            SegmentFacts { rows: 6, ..facts },
            SegmentFacts { deleted: &[1], ..facts },
            SegmentFacts { deleted: &[1, 3, 4], ..facts },
            SegmentFacts { deleted: &[1, 4], ..facts },
            SegmentFacts { blobs: &more, ..facts },
            SegmentFacts { blobs: &renamed, ..facts },
            SegmentFacts { digests: &swapped, ..facts },
            SegmentFacts { digests: &[], ..facts },
        ] {
            assert_ne!(leaf(&facts), leaf(&other), "{other:?}");
        }
        assert_eq!(leaf(&facts), leaf(&SegmentFacts { blobs: &turned, ..facts }));
        let (one, two) = ([[1; 32], [2; 32]].concat(), [[2; 32], [1; 32]].concat());
        assert_ne!(digest(&one), digest(&two));
    }
}
