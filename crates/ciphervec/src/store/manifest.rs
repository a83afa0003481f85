//! The state of a collection as one small file.
//!
//! `CVMANIFS` | format u32 | body length u64 | body | BLAKE3 of all before. Body: version u64 |
//! hash of the previous manifest, 32 bytes | meta | attachments | segments; counts and lengths are
//! u32. A manifest's hash is its last 32 bytes. Blob references are their name, the length u64 and
//! the root; names ascend. What a parser allocates stays under twice the bytes it was given.
//!
//! Format 2 adds to a blob reference where the blob lies, and to the body the keys of the latest
//! commits, the snapshots and whether the collection was dropped. A state that has none of these is
//! written as format 1, so that every state has one encoding and older releases read all that they
//! can.
//!
//! A segment's blobs are `rows`, `sidecar`, `records`, `originals`, `terms`, `tags`, and `wrap` in a writer's. Format 2 writes
//! behind each reference its place, 0 for its own file or 1, the number of a pack 16 and the offset in it u64; the keys of the
//! latest commits, 256 at most, count u32, each key 16, hash of the change 16, version u64 and hash of the manifest that the
//! commit made 32, zero in that manifest itself; the snapshots, count u32 and references to blobs that hold manifests; and a
//! byte that is 1 in the state after a collection was dropped.

use super::blob_ref::{BlobPlace, BlobRef};
use super::keyed::{self, CommitKey, Keyed};
use super::rows::RowSet;
use super::{SegmentId, error::StoreError};
use crate::decode::{DecodeError, Reader, hex};

const MAGIC: &[u8; 8] = b"CVMANIFS";
const VERSION: u32 = 2;
const WHAT: &str = "manifest";
const CHECKSUM: usize = 32;
const BODY: usize = 20;
/// Least bytes of a named blob reference: length, one character, reference.
const SHORTEST_BLOB: usize = 4 + 1 + 40;
/// Least bytes of a segment: id, rows, commit, count of deleted rows, count of blobs, one blob.
const SHORTEST_SEGMENT: usize = 16 + 4 + 8 + 4 + 4 + SHORTEST_BLOB;
const LONGEST_NAME: usize = 64;

type NamedBlob = (Box<str>, BlobRef);

/// A committed segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentEntry {
    /// Its id, unique in the folder.
    pub id: SegmentId,
    /// Its rows, deleted ones included; at least one.
    pub rows: u32,
    /// The version whose commit added it: what a reader that knows an older version has to fetch.
    pub added: u64,
    /// Its deleted rows.
    pub deleted: RowSet,
    pub(super) blobs: Box<[NamedBlob]>,
}

impl SegmentEntry {
    /// Its blobs by ascending name.
    pub fn blobs(&self) -> impl ExactSizeIterator<Item = (&str, &BlobRef)> {
        self.blobs.iter().map(|(name, blob)| (&**name, blob))
    }

    /// The blob of that name.
    pub fn blob(&self, name: &str) -> Option<&BlobRef> {
        find(&self.blobs, name)
    }
}

/// One committed state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Number of the commit; each commit adds one.
    pub version: u64,
    /// Hash of the manifest before this one; zeros in the first.
    pub previous: [u8; 32],
    /// The collection's opaque bytes.
    pub meta: Vec<u8>,
    /// Segments in the order in which they were added.
    pub segments: Vec<SegmentEntry>,
    /// Whether the collection was dropped: a state that says so holds nothing, and the next one
    /// makes the collection anew.
    pub dropped: bool,
    pub(super) attachments: Vec<NamedBlob>,
    /// The latest commits that were made under a key, oldest first.
    pub(super) keyed: Vec<Keyed>,
    /// Manifests kept under a name.
    pub(super) snapshots: Vec<NamedBlob>,
}

pub(super) fn find<'a>(blobs: &'a [NamedBlob], name: &str) -> Option<&'a BlobRef> {
    let index = blobs.binary_search_by(|(found, _)| (**found).cmp(name)).ok()?;
    blobs.get(index).map(|(_, blob)| blob)
}

/// Checks a blob or attachment name: 1 to 64 of `a-z 0-9 . _ -`.
pub(super) fn valid_name(name: &[u8]) -> bool {
    let allowed =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(byte);
    (1..=LONGEST_NAME).contains(&name.len()) && name.iter().all(allowed)
}

/// Checks a name that is given now: one of dots alone means another place in a path, so that nobody
/// could ask for it by URL.
pub(super) fn valid_new_name(name: &[u8]) -> bool {
    valid_name(name) && name.iter().any(|&byte| byte != b'.')
}

impl Manifest {
    /// The first state of a folder.
    pub(super) fn first(meta: &[u8]) -> Self {
        let meta = meta.to_vec();
        Self { meta, ..Self::empty() }
    }

    /// Nothing, as the first state.
    fn empty() -> Self {
        Self {
            version: 0,
            previous: [0; 32],
            meta: Vec::new(),
            segments: Vec::new(),
            dropped: false,
            attachments: Vec::new(),
            keyed: Vec::new(),
            snapshots: Vec::new(),
        }
    }

    /// The format that this state is written in: the oldest that can say all of it.
    fn format(&self) -> u32 {
        let packed = self.references().any(|blob| blob.place != BlobPlace::File);
        let newer = packed || self.dropped || !self.keyed.is_empty() || !self.snapshots.is_empty();
        if newer { 2 } else { 1 }
    }

    /// The commit that was made under this key, if it is among the latest.
    pub(super) fn keyed(&self, key: &CommitKey) -> Option<&Keyed> {
        self.keyed.iter().find(|found| found.key.key == key.key)
    }

    /// Snapshots by ascending name, with the manifest that each keeps.
    pub fn snapshots(&self) -> impl ExactSizeIterator<Item = (&str, &BlobRef)> {
        self.snapshots.iter().map(|(name, blob)| (&**name, blob))
    }

    /// Attachments by ascending name.
    pub fn attachments(&self) -> impl ExactSizeIterator<Item = (&str, &BlobRef)> {
        self.attachments.iter().map(|(name, blob)| (&**name, blob))
    }

    /// The segment of that id.
    pub fn segment(&self, id: &SegmentId) -> Option<&SegmentEntry> {
        self.segments.iter().find(|segment| &segment.id == id)
    }

    /// Bytes of all blobs; a blob under two names counts twice.
    pub fn bytes(&self) -> u64 {
        self.references().map(|blob| blob.length).sum()
    }

    /// Every blob that this state needs; a blob under two names comes twice.
    pub(super) fn references(&self) -> impl Iterator<Item = &BlobRef> {
        let segments = self.segments.iter().flat_map(|segment| segment.blobs.iter());
        segments.chain(&self.attachments).chain(&self.snapshots).map(|(_, blob)| blob)
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// [`StoreError::InvalidChange`] when a count or length exceeds 2^32 - 1.
    pub fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        let mut body = Vec::new();
        body.extend_from_slice(&self.version.to_le_bytes());
        body.extend_from_slice(&self.previous);
        write_count(&mut body, "length of the meta bytes", self.meta.len())?;
        body.extend_from_slice(&self.meta);
        let format = self.format();
        write_blobs(&mut body, &self.attachments, format)?;
        write_count(&mut body, "number of segments", self.segments.len())?;
        for segment in &self.segments {
            body.extend_from_slice(&segment.id);
            body.extend_from_slice(&segment.rows.to_le_bytes());
            body.extend_from_slice(&segment.added.to_le_bytes());
            segment.deleted.write(&mut body);
            write_blobs(&mut body, &segment.blobs, format)?;
        }
        if format > 1 {
            write_count(&mut body, "number of keyed commits", self.keyed.len())?;
            self.keyed.iter().for_each(|commit| commit.write(&mut body));
            write_blobs(&mut body, &self.snapshots, format)?;
            body.push(u8::from(self.dropped));
        }
        let mut out = Vec::with_capacity(BODY + body.len() + CHECKSUM);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&format.to_le_bytes());
        out.extend_from_slice(&(body.len() as u64).to_le_bytes());
        out.extend_from_slice(&body);
        let checksum = blake3::hash(&out);
        out.extend_from_slice(checksum.as_bytes());
        Ok(out)
    }

    /// Reads [`Manifest::to_bytes`]; nothing else is accepted.
    ///
    /// # Errors
    /// [`DecodeError`] naming the offset.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(WHAT, bytes);
        reader.header(MAGIC, VERSION)?;
        let declared = reader.u64()?;
        let actual = (reader.remaining() as u64).checked_sub(CHECKSUM as u64);
        if actual != Some(declared) {
            let actual = format!("{} bytes, checksum included", reader.remaining());
            return Err(reader.field("body length", 12, format!("{declared} + 32 bytes"), actual));
        }
        let body = reader.take(reader.remaining() - CHECKSUM)?;
        let at = reader.offset();
        let expected: [u8; CHECKSUM] = reader.array()?;
        reader.finish()?;
        let found = blake3::hash(&bytes[..BODY + body.len()]);
        if found != expected {
            let reader = Reader::new(WHAT, bytes);
            return Err(reader.field(
                "BLAKE3 of all before",
                at,
                hex(found.as_bytes()),
                hex(&expected),
            ));
        }
        Self::read_body(&bytes[..BODY + body.len()])
    }

    fn read_body(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(WHAT, bytes);
        let format = reader.header(MAGIC, VERSION)?;
        reader.u64()?;
        let version = reader.u64()?;
        let previous = reader.array()?;
        let length = reader.u32()? as usize;
        let meta = reader.take(length)?.to_vec();
        let attachments = read_blobs(&mut reader, format)?;
        let count = reader.u32()? as usize;
        reader.need_items(count, SHORTEST_SEGMENT)?;
        let mut segments = Vec::with_capacity(count);
        let segments_at = reader.offset();
        for _ in 0..count {
            segments.push(read_segment(&mut reader, version, format)?);
        }
        check_unique(&segments).map_err(|id| {
            reader.field("segment ids", segments_at, "each id once", format!("{} twice", hex(id)))
        })?;
        let read = Self { version, previous, meta, segments, attachments, ..Self::empty() };
        let read = if format > 1 { read.read_rest(&mut reader)? } else { read };
        if read.format() != format {
            let expected = format!("{}, which can say all of it", read.format());
            return Err(reader.field("format", 8, expected, format));
        }
        reader.finish()?;
        Ok(read)
    }

    /// What format 2 adds.
    fn read_rest(mut self, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        self.keyed = keyed::read(reader, self.version)?;
        self.snapshots = read_blobs(reader, 2)?;
        let at = reader.offset();
        let [dropped] = reader.array()?;
        let holds =
            !self.segments.is_empty() || !self.attachments.is_empty() || !self.snapshots.is_empty();
        if dropped > 1 || dropped == 1 && holds {
            return Err(reader.field("dropped", at, "0, or 1 in an empty state", dropped));
        }
        self.dropped = dropped == 1;
        Ok(self)
    }
}

/// The hash of a manifest file, by which the next one names it.
pub(super) fn hash(file: &[u8]) -> [u8; 32] {
    file.last_chunk().copied().unwrap_or_default()
}

fn check_unique(segments: &[SegmentEntry]) -> Result<(), &SegmentId> {
    let mut order: Vec<u32> = (0..segments.len() as u32).collect();
    order.sort_unstable_by_key(|&index| segments[index as usize].id);
    let id = |index: u32| &segments[index as usize].id;
    match order.windows(2).find(|pair| id(pair[0]) == id(pair[1])) {
        Some(pair) => Err(id(pair[0])),
        None => Ok(()),
    }
}

fn write_count(out: &mut Vec<u8>, what: &'static str, count: usize) -> Result<(), StoreError> {
    let count =
        u32::try_from(count).map_err(|_| StoreError::invalid(what, "at most 4294967295", count))?;
    out.extend_from_slice(&count.to_le_bytes());
    Ok(())
}

fn write_blobs(out: &mut Vec<u8>, blobs: &[NamedBlob], format: u32) -> Result<(), StoreError> {
    write_count(out, "number of blobs", blobs.len())?;
    for (name, blob) in blobs {
        write_count(out, "length of a name", name.len())?;
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&blob.length.to_le_bytes());
        out.extend_from_slice(&blob.root);
        if format > 1 {
            blob.place.write(out);
        }
    }
    Ok(())
}

fn read_blobs(reader: &mut Reader<'_>, format: u32) -> Result<Vec<NamedBlob>, DecodeError> {
    let count = reader.u32()? as usize;
    reader.need_items(count, SHORTEST_BLOB)?;
    let mut blobs: Vec<NamedBlob> = Vec::with_capacity(count);
    for _ in 0..count {
        let at = reader.offset();
        let length = reader.u32()? as usize;
        let bytes = reader.take(length)?;
        let name = match std::str::from_utf8(bytes) {
            Ok(name) if valid_name(bytes) => name,
            _ => {
                return Err(reader.field(
                    "name",
                    at,
                    "1 to 64 of a-z 0-9 . _ -",
                    bytes.escape_ascii(),
                ));
            }
        };
        if blobs.last().is_some_and(|(last, _)| **last >= *name) {
            return Err(reader.field("name", at, "larger than the name before it", name));
        }
        let (length, root) = (reader.u64()?, reader.array()?);
        let place = if format > 1 { BlobPlace::read(reader)? } else { BlobPlace::File };
        let blob = BlobRef { length, root, place };
        blobs.push((name.into(), blob));
    }
    Ok(blobs)
}

fn read_segment(
    reader: &mut Reader<'_>,
    version: u64,
    format: u32,
) -> Result<SegmentEntry, DecodeError> {
    let id = reader.array()?;
    let at = reader.offset();
    let rows = reader.u32()?;
    if rows == 0 {
        return Err(reader.field("rows", at, "at least 1", rows));
    }
    let added = reader.u64()?;
    if added > version {
        return Err(reader.field(
            "commit that added the segment",
            at + 4,
            format!("at most {version}"),
            added,
        ));
    }
    let deleted = RowSet::read(rows, reader)?;
    let at = reader.offset();
    let blobs = read_blobs(reader, format)?;
    if blobs.is_empty() {
        return Err(reader.field("blobs of a segment", at, "at least 1", 0));
    }
    Ok(SegmentEntry { id, rows, added, deleted, blobs: blobs.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let blob = |byte| BlobRef {
            length: u64::from(byte) * 1000,
            root: [byte; 32],
            place: BlobPlace::File,
        };
        let segment = |id, added, deleted| SegmentEntry {
            id: [id; 16],
            rows: 100,
            added,
            deleted,
            blobs: [("segment".into(), blob(id)), ("sidecar".into(), blob(id + 1))].into(),
        };
        Manifest {
            version: 9,
            previous: [3; 32],
            meta: b"spec".to_vec(),
            attachments: vec![("evaluation-keys".into(), blob(50))],
            segments: vec![
                segment(8, 2, RowSet::from_rows(100, [4, 99])),
                segment(1, 9, RowSet::from_rows(100, 10..90)),
            ],
            ..Manifest::empty()
        }
    }

    /// All that format 2 adds.
    fn newer() -> Manifest {
        let mut newer = sample();
        newer.attachments[0].1.place = BlobPlace::Pack { pack: [7; 16], slot: 65 };
        let commit = |key, version| Keyed {
            key: CommitKey { key: [key; 16], digest: [key + 1; 16] },
            version,
            head: if version == 9 { [0; 32] } else { [key; 32] },
        };
        newer.keyed = vec![commit(1, 4), commit(20, 9)];
        let place = BlobPlace::File;
        newer.snapshots = vec![("monday".into(), BlobRef { length: 900, root: [8; 32], place })];
        newer
    }

    #[test]
    fn bytes_round_trip() -> Result<(), Box<dyn std::error::Error>> {
        let bytes = newer().to_bytes()?;
        assert_eq!(bytes[8], 2);
        assert_eq!(Manifest::from_bytes(&bytes)?, newer());
        let bytes = sample().to_bytes()?;
        assert_eq!(bytes[8], 1, "what an older release can say it can read");
        assert_eq!(Manifest::from_bytes(&bytes)?, sample());
        assert_eq!(hash(&bytes), *blake3::hash(&bytes[..bytes.len() - 32]).as_bytes());
        assert_eq!(sample().segments[0].blob("sidecar").map(|blob| blob.length), Some(9000));
        assert_eq!(sample().segments[0].blob("sidecars"), None);
        Ok(())
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_refused() -> Result<(), StoreError> {
        for bytes in [sample().to_bytes()?, newer().to_bytes()?] {
            for bit in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(Manifest::from_bytes(&changed).is_err(), "bit {bit}");
            }
            for length in 0..bytes.len() {
                assert!(Manifest::from_bytes(&bytes[..length]).is_err(), "length {length}");
            }
        }
        Ok(())
    }

    /// A forger can make the checksum fit, as it has no key: what is left must parse canonically or
    /// not at all.
    #[test]
    fn flips_under_a_fitting_checksum_are_refused_or_canonical() -> Result<(), StoreError> {
        for bytes in [sample().to_bytes()?, newer().to_bytes()?] {
            let end = bytes.len() - CHECKSUM;
            let mut accepted = 0;
            for bit in 0..end * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                let checksum = blake3::hash(&changed[..end]);
                changed[end..].copy_from_slice(checksum.as_bytes());
                if let Ok(read) = Manifest::from_bytes(&changed) {
                    accepted += 1;
                    assert_eq!(read.to_bytes()?, changed, "bit {bit}");
                }
            }
            assert!(accepted > 1000, "hashes, ids and meta may be anything: {accepted}");
        }
        Ok(())
    }

    #[test]
    fn repeated_ids_and_names_are_refused() -> Result<(), StoreError> {
        let mut twice = sample();
        twice.segments[1].id = twice.segments[0].id;
        assert!(Manifest::from_bytes(&twice.to_bytes()?).is_err());
        let mut names = sample();
        names.attachments.push(names.attachments[0].clone());
        assert!(Manifest::from_bytes(&names.to_bytes()?).is_err());
        let mut future = sample();
        future.segments[0].added = 10;
        assert!(Manifest::from_bytes(&future.to_bytes()?).is_err());
        let mut keys = newer();
        keys.keyed[0].key.key = keys.keyed[1].key.key;
        assert!(Manifest::from_bytes(&keys.to_bytes()?).is_err());
        let mut dropped = newer();
        dropped.dropped = true;
        assert!(Manifest::from_bytes(&dropped.to_bytes()?).is_err());
        Ok(())
    }

    #[test]
    fn names_cannot_leave_the_folder() {
        assert!(valid_name(b"evaluation-keys.0"));
        for name in [&b""[..], b"../x", b"a/b", b"A", b"a b", b"\0", &[b'a'; 65]] {
            assert!(!valid_name(name), "{name:?}");
        }
    }
}
