//! Files that check themselves: a payload with its length and the hashes of its blocks.
//!
//! `CVSTBLOB` | version u32 | 0 u32 | payload length u64 | root, 32 bytes | 8 zero bytes | payload
//! | BLAKE3 of each 1 MiB block of the payload, 32 bytes each. The root hashes the length and the
//! block hashes; it is the file's name, and the manifest names it, so that a manifest stays small
//! and a block can be checked alone. A pack holds several such blobs back to back, each at a
//! multiple of 64; it is named by a number drawn for it, and the manifest says where each starts.

use super::blob_ref::{
    ALIGNMENT, BLOCK, BlobPlace, BlobRef, HASH, HEADER, MAGIC, VERSION, pack_file,
};
use super::error::StoreError;
use super::medium::Medium;
use crate::decode::hex;
use ciphervec_arith::buffer::AlignedBytes;
use rayon::prelude::*;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Writes a blob into a file of its own; durable after the medium is settled.
pub(super) fn write(medium: &dyn Medium, payload: &[u8]) -> Result<BlobRef, StoreError> {
    let (blob, hashes) = BlobRef::of(payload);
    medium.put(&blob.file(), &[&blob.header(), payload, &hashes])?;
    Ok(blob)
}

/// Writes blobs into one pack; durable after the medium is settled.
pub(super) fn write_pack(
    medium: &dyn Medium,
    pack: [u8; 16],
    payloads: &[&[u8]],
) -> Result<Vec<BlobRef>, StoreError> {
    let mut blobs = Vec::with_capacity(payloads.len());
    let mut frames = Vec::with_capacity(payloads.len());
    let mut offset = 0u64;
    for payload in payloads {
        let (blob, mut tail) = BlobRef::of(payload);
        let end = offset + blob.file_length();
        let next = end.next_multiple_of(ALIGNMENT);
        tail.resize(tail.len() + (next - end) as usize, 0);
        frames.push((blob.header(), *payload, tail));
        let slot = u32::try_from(offset / ALIGNMENT)
            .map_err(|_| StoreError::invalid("bytes of a pack", "below 2^38", offset))?;
        blobs.push(BlobRef { place: BlobPlace::Pack { pack, slot }, ..blob });
        offset = next;
    }
    let parts: Vec<&[u8]> = frames
        .iter()
        .flat_map(|(header, payload, tail)| [header.as_slice(), *payload, tail.as_slice()])
        .collect();
    medium.put(&pack_file(&pack), &parts)?;
    Ok(blobs)
}

/// A blob whose length and header are right.
struct Opened<'a> {
    medium: &'a dyn Medium,
    name: String,
    path: PathBuf,
    blob: BlobRef,
}

impl<'a> Opened<'a> {
    fn open(medium: &'a dyn Medium, blob: &BlobRef) -> Result<Self, StoreError> {
        let opened = Self::named(medium, blob)?;
        let mut header = [0; HEADER];
        opened.fill(0, &mut header)?;
        opened.check_header(&header)?;
        Ok(opened)
    }

    /// One whose header nobody has looked at yet.
    fn named(medium: &'a dyn Medium, blob: &BlobRef) -> Result<Self, StoreError> {
        let name = blob.file();
        let path = medium.path(&name);
        let opened = Self { medium, name, path, blob: *blob };
        if blob.place == BlobPlace::File {
            let length = medium.length(&opened.name)?.ok_or_else(|| opened.missing())?;
            let expected = blob.file_length();
            if length != expected {
                let offset = length.min(expected);
                return Err(StoreError::corrupt(
                    &opened.path,
                    offset,
                    format!("{expected} bytes"),
                    format!("{length} bytes"),
                ));
            }
        }
        Ok(opened)
    }

    fn missing(&self) -> StoreError {
        let expected = format!("a blob of {} bytes", self.blob.file_length());
        StoreError::Missing { path: self.path.clone(), expected }
    }

    fn check_header(&self, found: &[u8; HEADER]) -> Result<(), StoreError> {
        let version = u32::from_le_bytes([found[8], found[9], found[10], found[11]]);
        if found.starts_with(MAGIC) && version > VERSION {
            return Err(StoreError::Unsupported {
                path: self.path.clone(),
                newest: VERSION,
                actual: version,
            });
        }
        let expected = self.blob.header();
        match (0..HEADER).find(|&at| found[at] != expected[at]) {
            None => Ok(()),
            Some(at) => {
                let shown = |byte: u8| format!("header byte {byte:#04x}");
                Err(StoreError::corrupt(
                    &self.path,
                    self.blob.start() + at as u64,
                    shown(expected[at]),
                    shown(found[at]),
                ))
            }
        }
    }

    /// The block hashes, checked against the root.
    fn hashes(&self) -> Result<Vec<u8>, StoreError> {
        let offset = HEADER as u64 + self.blob.length;
        let mut hashes = vec![0; self.blob.blocks() as usize * HASH];
        self.fill(offset, &mut hashes)?;
        self.check_hashes(&hashes)?;
        Ok(hashes)
    }

    fn check_hashes(&self, hashes: &[u8]) -> Result<(), StoreError> {
        let offset = HEADER as u64 + self.blob.length;
        let found = BlobRef::from_hashes(self.blob.length, hashes);
        if found.root != self.blob.root {
            let shown = |root: &[u8; 32]| format!("block hashes with root {}", hex(root));
            return Err(StoreError::corrupt(
                &self.path,
                self.blob.start() + offset,
                shown(&self.blob.root),
                shown(&found.root),
            ));
        }
        Ok(())
    }

    /// Fills `out` from an offset in the blob.
    fn fill(&self, offset: u64, out: &mut [u8]) -> Result<(), StoreError> {
        let offset = self.blob.start().saturating_add(offset);
        match self.medium.read_at(&self.name, offset, out) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.missing()),
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::UnexpectedEof => {
                let expected = format!("{} bytes from here on", out.len());
                Err(StoreError::corrupt(&self.path, offset, expected, "the end (truncated)"))
            }
            Err(error) => Err(error),
        }
    }

    /// Reads whole blocks from the one of that index on, and checks each.
    fn read_blocks(&self, first: usize, expected: &[u8], out: &mut [u8]) -> Result<(), StoreError> {
        self.fill(HEADER as u64 + first as u64 * BLOCK as u64, out)?;
        let blocks = out.chunks(BLOCK).zip(expected.chunks_exact(HASH));
        blocks
            .zip(first..)
            .try_for_each(|((block, hash), index)| self.check_block(index, block, hash))
    }

    fn check_block(&self, index: usize, block: &[u8], expected: &[u8]) -> Result<(), StoreError> {
        let found = blake3::hash(block);
        if found.as_bytes() != expected {
            let offset = self.blob.start() + HEADER as u64 + index as u64 * BLOCK as u64;
            let shown =
                |hash: &[u8]| format!("a block of {} bytes with BLAKE3 {}", block.len(), hex(hash));
            return Err(StoreError::corrupt(
                &self.path,
                offset,
                shown(expected),
                shown(found.as_bytes()),
            ));
        }
        Ok(())
    }
}

/// Reads a blob into one aligned buffer and checks every block while it is in cache, in parallel on
/// the current rayon pool.
pub(super) fn read(medium: &dyn Medium, blob: &BlobRef) -> Result<AlignedBytes, StoreError> {
    if blob.length <= BLOCK as u64 {
        return read_small(medium, blob);
    }
    let opened = Opened::open(medium, blob)?;
    let length = usize::try_from(blob.length).map_err(|_| {
        StoreError::io("read into memory", &opened.path, ErrorKind::OutOfMemory.into())
    })?;
    let hashes = opened.hashes()?;
    let mut payload = AlignedBytes::zeroed(length);
    let blocks = (medium.stride() / BLOCK).max(1);
    let pieces = payload.par_chunks_mut(blocks * BLOCK).zip(hashes.par_chunks(blocks * HASH));
    pieces.enumerate().try_for_each(|(index, (piece, expected))| {
        opened.read_blocks(index * blocks, expected, piece)
    })?;
    Ok(payload)
}

/// Reads a blob of one block at most: header, payload and hash lie behind each other, and come with
/// one look at the file.
fn read_small(medium: &dyn Medium, blob: &BlobRef) -> Result<AlignedBytes, StoreError> {
    let opened = Opened::named(medium, blob)?;
    let mut whole = vec![0; blob.file_length() as usize];
    opened.fill(0, &mut whole)?;
    let mut header = [0; HEADER];
    let (head, rest) = whole.split_at(HEADER);
    header.copy_from_slice(head);
    opened.check_header(&header)?;
    let (payload, hashes) = rest.split_at(blob.length as usize);
    opened.check_hashes(hashes)?;
    if !payload.is_empty() {
        opened.check_block(0, payload, hashes)?;
    }
    Ok(AlignedBytes::from_slice(payload))
}

/// Reads the first `length` bytes of a blob, or all of a shorter one; the blocks that they lie in
/// are checked.
pub(super) fn read_start(
    medium: &dyn Medium,
    blob: &BlobRef,
    length: usize,
) -> Result<Vec<u8>, StoreError> {
    let opened = Opened::open(medium, blob)?;
    let hashes = opened.hashes()?;
    let length = (length as u64).min(blob.length);
    let whole = length.next_multiple_of(BLOCK as u64).min(blob.length);
    let mut start = vec![0; whole as usize];
    opened.read_blocks(0, &hashes, &mut start)?;
    start.truncate(length as usize);
    Ok(start)
}

/// Checks a blob a block at a time, in 1 MiB of memory. Each fault goes to `fault`, the length of
/// each block read to `progress`; faults of different blocks are all found.
pub(super) fn check(
    medium: &dyn Medium,
    blob: &BlobRef,
    fault: &mut dyn FnMut(StoreError),
    progress: &mut dyn FnMut(u64),
) {
    let opened = Opened::open(medium, blob);
    let (opened, hashes) = match opened.and_then(|opened| Ok((opened.hashes()?, opened))) {
        Ok((hashes, opened)) => (opened, hashes),
        Err(error) => return fault(error),
    };
    let mut buffer = vec![0; BLOCK];
    let mut left = blob.length;
    for (index, expected) in hashes.chunks_exact(HASH).enumerate() {
        let length = left.min(BLOCK as u64);
        left -= length;
        let block = &mut buffer[..length as usize];
        if let Err(error) = opened.read_blocks(index, expected, block) {
            fault(error);
        }
        progress(length);
    }
}
