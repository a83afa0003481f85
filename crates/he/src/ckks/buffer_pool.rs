//! Pool of aligned words, which buffers come back to when they are dropped.
//!
//! A polynomial of twelve primes at degree 2^15 is three megabytes. Fresh from the system each of
//! its pages would be zeroed and mapped anew for every operation, which costs as much as a
//! rotation. The pool belongs to a parameter set and goes with it. What it keeps for reuse
//! follows what was in use at once.

use ciphervec_arith::buffer::{give_pages_back, prefer_huge_pages};
use core::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Words in a cache line: buffers start on one, so that no vector load straddles two.
const LINE: usize = 8;
/// Words in a huge page: large buffers start on one and fill the last one.
const HUGE: usize = (2 << 20) / size_of::<u64>();

/// What may be in memory besides the most words in use at once, as a share of them: buffers of one
/// size wait while those of another are in use.
const SPARE: usize = 4;
/// Words that may wait in any case: eight megabytes, which small rings fill and empty in every operation.
const FEW: usize = 1 << 20;
/// How much longer than asked for a buffer may be, as a share: or small requests would hold the large
/// ones.
const LONGER: usize = 2;

/// Words that came from the system.
#[derive(Default)]
struct Shelf {
    /// Those that wait for their next use, the buffer that came back last at the end.
    free: Vec<Vec<u64>>,
    /// How many wait, how many are in use, and how many were at once.
    waiting: usize,
    lent: usize,
    most: usize,
}

impl Shelf {
    /// Takes away the buffers that have waited longest, until no more than `limit` wait, and no more than
    /// `few` or all words together are no more than were in use at once and what is spare.
    fn excess(&mut self, limit: usize, few: usize) -> Vec<Vec<u64>> {
        let most = limit.min(few.max(self.most + self.most / SPARE - self.lent));
        let mut stale = 0;
        while self.waiting > most {
            self.waiting -= self.free[stale].len();
            stale += 1;
        }
        self.free.drain(..stale).collect()
    }
}

/// Buffers of one parameter set.
pub(super) struct BufferPool {
    shelf: Mutex<Shelf>,
    limit: usize,
    few: usize,
}

impl BufferPool {
    /// A pool that keeps at most `limit` words, those used last.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(BufferPool { shelf: Mutex::default(), limit, few: FEW })
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `length` words with whatever was in them last.
    pub fn take(self: &Arc<Self>, length: usize) -> Buffer {
        let mut shelf = self.lock();
        let whole = shape(length).1;
        let fits = |words: &Vec<u64>| (whole..=whole + whole / LONGER).contains(&words.len());
        // The one that came back last of those that fit best: it may still be in the cache.
        let best = shelf.free.iter().enumerate().rev().filter(|(_, words)| fits(words));
        let best = best.min_by_key(|(_, words)| words.len()).map(|(index, _)| index);
        let words = best.map(|index| shelf.free.remove(index));
        shelf.waiting -= words.as_ref().map_or(0, Vec::len);
        shelf.lent += words.as_ref().map_or(whole, Vec::len);
        shelf.most = shelf.most.max(shelf.lent);
        let stale = shelf.excess(self.limit, self.few);
        // Pages go back to the system, and come from it, without the lock.
        drop(shelf);
        freed(stale);
        Buffer::new(words.unwrap_or_else(|| allocated(whole)), length, Some(self.clone()))
    }

    /// `length` words for what is there to stay, as keys are: they do not come back, and are not
    /// counted.
    pub fn keep(length: usize) -> Buffer {
        Buffer::new(allocated(shape(length).1), length, None)
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

/// Zero words. An allocator that had them before has written to all of them: what alignment leaves over
/// goes back.
fn allocated(whole: usize) -> Vec<u64> {
    let mut words = vec![0; whole];
    prefer_huge_pages(bytemuck::cast_slice_mut(&mut words));
    if whole >= 2 * HUGE {
        let first = start(&words, HUGE);
        let (before, rest) = words.split_at_mut(first);
        let (_, after) = rest.split_at_mut(whole - HUGE);
        give_pages_back(bytemuck::cast_slice_mut(before));
        give_pages_back(bytemuck::cast_slice_mut(after));
    }
    words
}

/// Where the first aligned word is.
fn start(words: &[u64], alignment: usize) -> usize {
    words.as_ptr().align_offset(alignment * size_of::<u64>()).min(alignment)
}

fn freed(buffers: Vec<Vec<u64>>) {
    for mut words in buffers {
        give_pages_back(bytemuck::cast_slice_mut(&mut words));
    }
}

/// A borrowed buffer.
pub(super) struct Buffer {
    words: Vec<u64>,
    start: usize,
    length: usize,
    /// Where it goes back to.
    pool: Option<Arc<BufferPool>>,
}

impl Buffer {
    fn new(words: Vec<u64>, length: usize, pool: Option<Arc<BufferPool>>) -> Self {
        let start = start(&words, shape(length).0);
        Buffer { words, start, length, pool }
    }

    /// Forgets the words from `length` on.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let mut copy = match &self.pool {
            Some(pool) => pool.take(self.length),
            None => BufferPool::keep(self.length),
        };
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
        let Some(pool) = &self.pool else { return freed(vec![words]) };
        let mut shelf = pool.lock();
        shelf.lent -= words.len();
        if words.len() > pool.limit {
            drop(shelf);
            return freed(vec![words]);
        }
        shelf.waiting += words.len();
        shelf.free.push(words);
        let stale = shelf.excess(pool.limit, pool.few);
        // Pages go back to the system without the lock.
        drop(shelf);
        freed(stale);
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
        let shelf = pool.lock();
        assert_eq!(shelf.free.len(), 2);
        assert_eq!(shelf.waiting, shelf.free.iter().map(Vec::len).sum());
        assert!(shelf.waiting <= 10_000);
    }

    #[test]
    fn the_oldest_buffers_make_room() {
        let pool = BufferPool::new(10_000);
        drop([pool.take(4000), pool.take(4001), pool.take(4002)]);
        let lengths: Vec<usize> = pool.lock().free.iter().map(|words| words.len() - LINE).collect();
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

    #[test]
    fn a_few_buffers_wait_whatever_was_in_use() {
        let pool = BufferPool::new(2 * FEW);
        for length in [1000, 2000, 4000, 8000] {
            drop(pool.take(length));
        }
        assert_eq!(pool.lock().free.len(), 4);
        // Beyond those, no more than were in use at once.
        let many = FEW / 1000;
        drop((0..many).map(|_| pool.take(1000)).collect::<Vec<_>>());
        drop((0..many).map(|_| pool.take(3000)).collect::<Vec<_>>());
        let shelf = pool.lock();
        assert!(
            shelf.waiting <= shelf.most + shelf.most / SPARE,
            "{} of {}",
            shelf.waiting,
            shelf.most
        );
    }

    /// Never much more words than were in use at once: what waits goes before other sizes come.
    #[test]
    fn what_waits_makes_room_for_other_sizes() {
        let pool = Arc::new(BufferPool { shelf: Mutex::default(), limit: 100_000, few: 0 });
        let total = || {
            let shelf = pool.lock();
            (shelf.lent, shelf.waiting, shelf.most)
        };
        drop([pool.take(4000), pool.take(4000), pool.take(100)]);
        let most = 2 * (4000 + LINE) + 100 + LINE;
        assert_eq!(total(), (0, most, most));
        // Of other sizes: the first fits what is spare, for the second what came back first goes.
        let small = pool.take(1500);
        assert_eq!(total(), (1500 + LINE, most, most));
        let large = pool.take(2500);
        assert_eq!(total(), (1500 + 2500 + 2 * LINE, 4000 + 100 + 2 * LINE, most));
        drop((small, large));
        assert_eq!(total(), (0, 4000 + 1500 + 2500 + 100 + 4 * LINE, most));
        // What stays is not counted.
        let copy = BufferPool::keep(50_000).clone();
        assert_eq!((copy.len(), total().0), (50_000, 0));
        drop(copy);
        assert_eq!(total().1, 4000 + 1500 + 2500 + 100 + 4 * LINE);
    }
}
