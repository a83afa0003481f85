//! A payload enters, a self-checking file leaves (and back); any side.
//!
//! `CVSTBLOB` | version u32 | 0 u32 | payload length u64 | root, 32 bytes | 8 zero bytes | payload | BLAKE3 of each
//! 1 MiB block of the payload, 32 bytes each. The root hashes the length and the block hashes; it is the file's name, and
//! the manifest names it, so that a manifest stays small and a block can be checked alone.

use super::disk;
use super::error::StoreError;
use crate::decode::hex;
use ciphervec_arith::buffer::AlignedBytes;
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of payload under one hash: 1 MiB.
pub const BLOCK: usize = 1 << 20;

const MAGIC: &[u8; 8] = b"CVSTBLOB";
const VERSION: u32 = 1;
const HEADER: usize = 64;
const HASH: usize = 32;

/// What a manifest says about a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlobRef {
    /// Length of the payload in bytes.
    pub length: u64,
    /// BLAKE3 over the length and the hashes of the blocks.
    pub root: [u8; 32],
}

impl BlobRef {
    /// The reference of a payload, and its block hashes one after another.
    fn of(payload: &[u8]) -> (Self, Vec<u8>) {
        let hashes: Vec<[u8; HASH]> =
            payload.par_chunks(BLOCK).map(|block| blake3::hash(block).into()).collect();
        let hashes = hashes.concat();
        (Self::from_hashes(payload.len() as u64, &hashes), hashes)
    }

    fn from_hashes(length: u64, hashes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 blob root");
        hasher.update(&length.to_le_bytes()).update(hashes);
        Self { length, root: hasher.finalize().into() }
    }

    /// Blocks in the payload.
    pub(super) fn blocks(&self) -> u64 {
        self.length.div_ceil(BLOCK as u64)
    }

    /// Length of the file in bytes.
    pub(super) fn file_length(&self) -> u64 {
        let hashes = self.blocks() * HASH as u64;
        self.length.saturating_add(HEADER as u64 + hashes)
    }

    /// Where the blob lies.
    pub(super) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(hex(&self.root))
    }

    fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[16..24].copy_from_slice(&self.length.to_le_bytes());
        header[24..56].copy_from_slice(&self.root);
        header
    }
}

/// Writes a blob into `folder`, fsynced and under its own name; durable after the folder is fsynced.
pub(super) fn write(folder: &Path, payload: &[u8]) -> Result<BlobRef, StoreError> {
    let (blob, hashes) = BlobRef::of(payload);
    let path = blob.path(folder);
    let temporary = path.with_extension(super::folder::TEMPORARY);
    let written = disk::write_file(&temporary, &[&blob.header(), payload, &hashes]);
    if let Err(error) = written.and_then(|()| disk::rename(&temporary, &path)) {
        // Room for the next attempt; whatever stays is collected by the next open.
        let _ = disk::remove(&temporary);
        return Err(error);
    }
    Ok(blob)
}

/// A blob file whose length and header are right.
struct Opened {
    file: File,
    path: PathBuf,
    blob: BlobRef,
}

impl Opened {
    fn open(folder: &Path, blob: &BlobRef) -> Result<Self, StoreError> {
        let path = blob.path(folder);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let expected = format!("a blob of {} bytes", blob.file_length());
                return Err(StoreError::Missing { path, expected });
            }
            Err(source) => return Err(StoreError::io("open", &path, source)),
        };
        let length = file
            .metadata()
            .map_err(|source| StoreError::io("read the length of", &path, source))?
            .len();
        let expected = blob.file_length();
        if length != expected {
            let offset = length.min(expected);
            return Err(StoreError::corrupt(
                &path,
                offset,
                format!("{expected} bytes"),
                format!("{length} bytes"),
            ));
        }
        let opened = Self { file, path, blob: *blob };
        let mut header = [0; HEADER];
        opened.fill(&opened.file, 0, &mut header)?;
        opened.check_header(&header)?;
        Ok(opened)
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
                    at as u64,
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
        self.fill(&self.file, offset, &mut hashes)?;
        let found = BlobRef::from_hashes(self.blob.length, &hashes);
        if found != self.blob {
            let shown = |root: &[u8; 32]| format!("block hashes with root {}", hex(root));
            return Err(StoreError::corrupt(
                &self.path,
                offset,
                shown(&self.blob.root),
                shown(&found.root),
            ));
        }
        Ok(hashes)
    }

    fn fill(&self, mut file: &File, offset: u64, out: &mut [u8]) -> Result<(), StoreError> {
        let moved = file.seek(SeekFrom::Start(offset));
        moved
            .and_then(|_| file.read_exact(out))
            .map_err(|source| StoreError::io("read", &self.path, source))
    }

    /// Reads one block and checks it.
    fn read_block(
        &self,
        file: &File,
        index: usize,
        expected: &[u8],
        block: &mut [u8],
    ) -> Result<(), StoreError> {
        self.fill(file, HEADER as u64 + index as u64 * BLOCK as u64, block)?;
        self.check_block(index, block, expected)
    }

    fn check_block(&self, index: usize, block: &[u8], expected: &[u8]) -> Result<(), StoreError> {
        let found = blake3::hash(block);
        if found.as_bytes() != expected {
            let offset = HEADER as u64 + index as u64 * BLOCK as u64;
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

/// Reads a blob into one aligned buffer and checks every block while it is in cache, in parallel on the
/// current rayon pool.
pub(super) fn read(folder: &Path, blob: &BlobRef) -> Result<AlignedBytes, StoreError> {
    let opened = Opened::open(folder, blob)?;
    let length = usize::try_from(blob.length).map_err(|_| {
        StoreError::io("read into memory", &opened.path, ErrorKind::OutOfMemory.into())
    })?;
    let hashes = opened.hashes()?;
    let mut payload = AlignedBytes::zeroed(length);
    payload.par_chunks_mut(BLOCK).zip(hashes.par_chunks(HASH)).enumerate().try_for_each_init(
        // A handle for each task: handles that share a file share its position.
        || File::open(&opened.path),
        |file, (index, (block, expected))| match file {
            Ok(file) => opened.read_block(file, index, expected, block),
            Err(error) => Err(StoreError::io("open", &opened.path, io::Error::from(error.kind()))),
        },
    )?;
    Ok(payload)
}

/// Checks a blob a block at a time, in 1 MiB of memory. Each fault goes to `fault`, the length of each block read to
/// `progress`; faults of different blocks are all found.
pub(super) fn check(
    folder: &Path,
    blob: &BlobRef,
    fault: &mut dyn FnMut(StoreError),
    progress: &mut dyn FnMut(u64),
) {
    let opened = Opened::open(folder, blob);
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
        if let Err(error) = opened.read_block(&opened.file, index, expected, block) {
            fault(error);
        }
        progress(length);
    }
}
