//! Bytes in memory that start on a cache line, so that a 64-byte load never straddles two.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::pages;

const LINE: usize = 64;

/// Bytes whose first one lies on a 64-byte boundary, so that a 64-byte load never straddles two
/// cache lines.
#[derive(Default)]
pub struct AlignedBytes {
    /// Plain words, not lines: only memory of ordinary alignment comes from the system zeroed and
    /// untouched.
    words: Vec<u64>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    /// `len` zero bytes; untouched pages cost nothing until written.
    pub fn zeroed(len: usize) -> Self {
        let mut words: Vec<u64> = vec![0; len.div_ceil(8) + LINE / 8];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        prefer_huge_pages(bytes);
        let start = bytes.as_ptr().align_offset(LINE);
        AlignedBytes { words, start, len }
    }

    /// A copy of `bytes`.
    pub fn from_slice(bytes: &[u8]) -> Self {
        let mut buffer = Self::zeroed(bytes.len());
        buffer.as_mut_slice().copy_from_slice(bytes);
        buffer
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[self.start..self.start + self.len]
    }

    /// The bytes, to write.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[self.start..self.start + self.len]
    }
}

/// Asks the system to back a large buffer that nothing was written to yet with huge pages: a scan
/// then misses the address translation cache 512 times less often, and first writes fault 512 times
/// less often. A hint, without effect where the system has none.
pub fn prefer_huge_pages(bytes: &mut [u8]) {
    pages::prefer_huge(bytes);
}

/// Gives whole pages back to the system, of what is not used or about to be dropped: an allocator may
/// keep what is freed for itself. They may then hold zeros. A hint, without effect where the system has
/// none.
pub fn give_pages_back(bytes: &mut [u8]) {
    pages::give_back(bytes);
}

impl Clone for AlignedBytes {
    fn clone(&self) -> Self {
        Self::from_slice(self)
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl From<&[u8]> for AlignedBytes {
    fn from(bytes: &[u8]) -> Self {
        Self::from_slice(bytes)
    }
}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBytes").field("len", &self.len).finish_non_exhaustive()
    }
}
