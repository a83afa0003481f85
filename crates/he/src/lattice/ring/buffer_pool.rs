//! Pool of words, which buffers come back to when they are dropped. Server only.
//!
//! A query's tree and sums are some twenty megabytes; fresh from the system each of their pages
//! would be zeroed and mapped anew for every query, which costs as much as scanning. Only public
//! ciphertexts ever lie here.

use ciphervec_arith::buffer::AlignedBytes;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes kept between queries: ten megabytes for each of some ring queries in flight; or what ten fetches
/// take, their nodes, selectors and sums.
const KEPT: usize = 288 << 20;

static POOL: Mutex<Vec<AlignedBytes>> = Mutex::new(Vec::new());

fn pool() -> MutexGuard<'static, Vec<AlignedBytes>> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A borrowed buffer, which starts on a cache line: a transform's loads and stores of a whole one would each touch two.
pub(in crate::lattice) struct Buffer {
    bytes: AlignedBytes,
    length: usize,
}

impl Buffer {
    /// `length` words with whatever was in them last.
    pub fn take(length: usize) -> Self {
        let mut pool = pool();
        // What is much longer is left to whoever needs that: it would be the dearest to get again.
        let size = size_of::<u64>() * length;
        let fits = pool.iter().enumerate();
        let fits = fits.filter(|(_, bytes)| (size..=2 * size).contains(&bytes.len()));
        let best = fits.min_by_key(|(_, bytes)| bytes.len()).map(|(index, _)| index);
        let bytes = best.map(|index| pool.swap_remove(index));
        drop(pool);
        Buffer { bytes: bytes.unwrap_or_else(|| AlignedBytes::zeroed(size)), length }
    }

    /// Leaves the first words alone, if there are more.
    pub fn shorten(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

impl Deref for Buffer {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &bytemuck::cast_slice(&self.bytes)[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut bytemuck::cast_slice_mut(&mut self.bytes)[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut pool = pool();
        pool.push(core::mem::take(&mut self.bytes));
        // The smallest go first: they are the cheapest to get again.
        while pool.iter().map(AlignedBytes::len).sum::<usize>() > KEPT {
            let smallest = pool
                .iter()
                .enumerate()
                .min_by_key(|(_, bytes)| bytes.len())
                .map(|(index, _)| index);
            smallest.map(|index| pool.swap_remove(index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_have_the_length_asked_for_and_are_bounded() {
        let first = Buffer::take(1000);
        let second = Buffer::take(10);
        assert_eq!((first.len(), second.len()), (1000, 10));
        drop(first);
        assert_eq!(Buffer::take(999).len(), 999);
        drop(Buffer::take(KEPT / 8 + 1));
        assert!(pool().iter().map(AlignedBytes::len).sum::<usize>() <= KEPT);
        assert!(Buffer::take(3).as_ptr().addr().is_multiple_of(64));
    }
}
