//! Buffer pool: a length enters, aligned words leave and come back when dropped. Both sides.
//!
//! A polynomial of twelve primes at degree 2^15 is three megabytes. Fresh from the system each of
//! its pages would be zeroed and mapped anew for every operation, which costs as much as a
//! rotation. The pool belongs to a parameter set and goes with it.

use ciphervec_arith::buffer::prefer_huge_pages;
use core::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Words in a cache line: buffers start on one, so that no vector load straddles two.
const LINE: usize = 8;
/// Words in a huge page: large buffers start on one and fill the last one.
const HUGE: usize = (2 << 20) / size_of::<u64>();

/// Buffers that wait for their next use, the one that came back last at the end.
pub(super) struct BufferPool {
    free: Mutex<Vec<Vec<u64>>>,
    limit: usize,
}

impl BufferPool {
    /// A pool that keeps at most `limit` words, those used last.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(BufferPool { free: Mutex::new(Vec::new()), limit })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u64>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `length` words with whatever was in them last.
    pub fn take(self: &Arc<Self>, length: usize) -> Buffer {
        let mut free = self.lock();
        let (alignment, whole) = shape(length);
        // Not more than twice what is needed, or small requests would hold the large buffers.
        let fits = |words: &Vec<u64>| (whole..=2 * whole).contains(&words.len());
        // The one that came back last of those that fit best: it may still be in the cache.
        let best = free.iter().enumerate().rev().filter(|(_, words)| fits(words));
        let best = best.min_by_key(|(_, words)| words.len()).map(|(index, _)| index);
        let words = best.map(|index| free.remove(index));
        drop(free);
        let words = words.unwrap_or_else(|| {
            let mut words = vec![0; whole];
            prefer_huge_pages(bytemuck::cast_slice_mut(&mut words));
            words
        });
        let start = words.as_ptr().align_offset(alignment * size_of::<u64>()).min(alignment);
        Buffer { words, start, length, pool: self.clone() }
    }

    /// `length` zero words.
    pub fn zeroed(self: &Arc<Self>, length: usize) -> Buffer {
        let mut words = self.take(length);
        words.fill(0);
        words
    }
}

/// Bytes that a buffer of `length` words takes from the system.
pub(super) fn bytes(length: usize) -> usize {
    shape(length).1.saturating_mul(size_of::<u64>())
}

/// The alignment of a buffer of `length` words, and the words it takes from the system.
fn shape(length: usize) -> (usize, usize) {
    if length < HUGE {
        return (LINE, length + LINE);
    }
    let whole = length.checked_next_multiple_of(HUGE).unwrap_or(usize::MAX);
    (HUGE, whole.saturating_add(HUGE))
}

/// A borrowed buffer.
pub(super) struct Buffer {
    words: Vec<u64>,
    start: usize,
    length: usize,
    pool: Arc<BufferPool>,
}

impl Buffer {
    /// Forgets the words from `length` on.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let mut copy = self.pool.take(self.length);
        copy.copy_from_slice(self);
        copy
    }
}

impl Deref for Buffer {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.words[self.start..self.start + self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.words[self.start..self.start + self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let words = core::mem::take(&mut self.words);
        if words.len() > self.pool.limit {
            return;
        }
        let mut free = self.pool.lock();
        free.push(words);
        let kept: usize = free.iter().map(Vec::len).sum();
        let mut excess = kept.saturating_sub(self.pool.limit);
        let mut stale = 0;
        while excess > 0 {
            excess = excess.saturating_sub(free[stale].len());
            stale += 1;
        }
        let stale: Vec<Vec<u64>> = free.drain(..stale).collect();
        // Pages go back to the system without the lock.
        drop(free);
        drop(stale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_reused_and_bounded() {
        let pool = BufferPool::new(10_000);
        let first = pool.take(1000);
        assert_eq!((first.len(), first.as_ptr() as usize % 64), (1000, 0));
        let address = first.as_ptr();
        drop(first);
        let second = pool.take(990);
        assert_eq!((second.len(), second.as_ptr()), (990, address));
        drop(pool.take(20_000));
        let large = pool.take(3 * HUGE / 2);
        assert_eq!((large.len(), large.as_ptr() as usize % (2 << 20)), (3 * HUGE / 2, 0));
        drop(large);
        drop((second, pool.take(1)));
        let free = pool.lock();
        assert_eq!(free.len(), 2);
        assert!(free.iter().map(Vec::len).sum::<usize>() <= 10_000);
    }

    #[test]
    fn the_oldest_buffers_make_room() {
        let pool = BufferPool::new(10_000);
        drop([pool.take(4000), pool.take(4001), pool.take(4002)]);
        let lengths: Vec<usize> = pool.lock().iter().map(|words| words.len() - LINE).collect();
        assert_eq!(lengths, [4001, 4002]);
    }

    #[test]
    fn the_buffer_that_came_back_last_is_the_next() {
        let pool = BufferPool::new(10_000);
        let [first, second] = [pool.take(1000), pool.take(1000)];
        let last = second.as_ptr();
        drop(first);
        drop(second);
        assert_eq!(pool.take(1000).as_ptr(), last);
    }
}
