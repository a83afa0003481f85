//! What a manifest says of a blob: its length, its root and its place.

use crate::decode::{DecodeError, Reader, hex};
use rayon::prelude::*;

/// Where blobs and packs lie below a collection.
pub const BLOBS: &str = "blobs";
/// Bytes of payload under one hash: 1 MiB.
pub const BLOCK: usize = 1 << 20;

pub(super) const MAGIC: &[u8; 8] = b"CVSTBLOB";
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER: usize = 64;
pub(super) const HASH: usize = 32;

/// What a manifest says about a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlobRef {
    /// Length of the payload in bytes.
    pub length: u64,
    /// BLAKE3 over the length and the hashes of the blocks.
    pub root: [u8; 32],
    /// Where it lies.
    pub place: BlobPlace,
}

/// Where a blob lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlobPlace {
    /// In a file of its own, named by its root.
    File,
    /// In a pack, at an offset.
    Pack {
        /// The name of the pack.
        pack: [u8; 16],
        /// Where the blob begins in it, in units of 64 bytes: a manifest in memory has one of these
        /// a blob.
        slot: u32,
    },
}

/// Names of packs start with this.
pub(super) const PACK: &str = "pack-";
pub(super) const ALIGNMENT: u64 = HEADER as u64;

/// A file that blobs lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum BlobFile {
    /// Of one blob, named by its root.
    Own([u8; HASH]),
    /// Of several.
    Pack([u8; 16]),
}

impl BlobFile {
    /// Its name below the collection.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Own(root) => format!("{BLOBS}/{}", hex(root)),
            Self::Pack(pack) => pack_file(pack),
        }
    }
}

impl BlobPlace {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::File => out.push(0),
            Self::Pack { pack, slot } => {
                out.push(1);
                out.extend_from_slice(pack);
                out.extend_from_slice(&(u64::from(*slot) * ALIGNMENT).to_le_bytes());
            }
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = reader.offset();
        match reader.u8()? {
            0 => Ok(Self::File),
            1 => {
                let (pack, at) = (reader.array()?, reader.offset());
                let offset = reader.u64()?;
                match u32::try_from(offset / ALIGNMENT) {
                    Ok(slot) if offset % ALIGNMENT == 0 => Ok(Self::Pack { pack, slot }),
                    _ => {
                        let expected = format!("a multiple of {ALIGNMENT} below 2^38");
                        Err(reader.field("offset in a pack", at, expected, offset))
                    }
                }
            }
            other => Err(reader.field("place of a blob", at, "0 or 1", other)),
        }
    }
}

impl BlobRef {
    /// The reference of a payload, and its block hashes one after another.
    pub(super) fn of(payload: &[u8]) -> (Self, Vec<u8>) {
        let hashes: Vec<[u8; HASH]> =
            payload.par_chunks(BLOCK).map(|block| blake3::hash(block).into()).collect();
        let hashes = hashes.concat();
        (Self::from_hashes(payload.len() as u64, &hashes), hashes)
    }

    pub(super) fn from_hashes(length: u64, hashes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 blob root");
        hasher.update(&length.to_le_bytes()).update(hashes);
        Self { length, root: hasher.finalize().into(), place: BlobPlace::File }
    }

    /// Blocks in the payload.
    pub(super) fn blocks(&self) -> u64 {
        self.length.div_ceil(BLOCK as u64)
    }

    /// Length at rest in bytes.
    pub(super) fn file_length(&self) -> u64 {
        let hashes = self.blocks() * HASH as u64;
        self.length.saturating_add(HEADER as u64 + hashes)
    }

    /// The file that the blob lies in.
    pub(super) fn lies_in(&self) -> BlobFile {
        match self.place {
            BlobPlace::File => BlobFile::Own(self.root),
            BlobPlace::Pack { pack, .. } => BlobFile::Pack(pack),
        }
    }

    /// The name of that file.
    pub(super) fn file(&self) -> String {
        self.lies_in().name()
    }

    pub(super) fn start(&self) -> u64 {
        match self.place {
            BlobPlace::File => 0,
            BlobPlace::Pack { slot, .. } => u64::from(slot) * ALIGNMENT,
        }
    }

    pub(super) fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[16..24].copy_from_slice(&self.length.to_le_bytes());
        header[24..56].copy_from_slice(&self.root);
        header
    }
}

pub(super) fn pack_file(pack: &[u8; 16]) -> String {
    format!("{BLOBS}/{PACK}{}", hex(pack))
}
