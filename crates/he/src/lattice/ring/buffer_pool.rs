//! Pool of words, which buffers come back to when they are dropped. Server only.
//!
//! A query's tree and sums are some twenty megabytes; fresh from the system each of their pages
//! would be zeroed and mapped anew for every query, which costs as much as scanning. Only public
//! ciphertexts ever lie here.

use ciphervec_arith::buffer::prefer_huge_pages;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Words kept between queries: ten megabytes for each of some ring queries in flight; or what ten fetches
/// take, their nodes, selectors and sums.
const KEPT_WORDS: usize = 36 << 20;

static POOL: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());

fn pool() -> MutexGuard<'static, Vec<Vec<u64>>> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A borrowed buffer.
pub(in crate::lattice) struct Buffer {
    words: Vec<u64>,
    length: usize,
}

impl Buffer {
    /// `length` words with whatever was in them last.
    pub fn take(length: usize) -> Self {
        let mut pool = pool();
        // What is much longer is left to whoever needs that: it would be the dearest to get again.
        let fits = pool.iter().enumerate();
        let fits = fits.filter(|(_, words)| (length..=2 * length).contains(&words.len()));
        let best = fits.min_by_key(|(_, words)| words.len()).map(|(index, _)| index);
        let words = best.map(|index| pool.swap_remove(index));
        drop(pool);
        let fresh = || {
            let mut words = vec![0; length];
            prefer_huge_pages(bytemuck::cast_slice_mut(&mut words));
            words
        };
        Buffer { words: words.unwrap_or_else(fresh), length }
    }

    /// Leaves the first words alone, if there are more.
    pub fn shorten(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

impl Deref for Buffer {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.words[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.words[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut pool = pool();
        pool.push(core::mem::take(&mut self.words));
        // The smallest go first: they are the cheapest to get again.
        while pool.iter().map(Vec::len).sum::<usize>() > KEPT_WORDS {
            let smallest = pool
                .iter()
                .enumerate()
                .min_by_key(|(_, words)| words.len())
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
        drop(Buffer::take(KEPT_WORDS + 1));
        assert!(pool().iter().map(Vec::len).sum::<usize>() <= KEPT_WORDS);
    }
}
