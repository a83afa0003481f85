//! Iterators over slices and ranges that the threads of the current pool share; where there are no
//! threads, plain ones of the same names.
//!
//! In WebAssembly rayon would run on the one thread that there is, and bring its scheduler and every loop twice.

#[cfg(not(target_family = "wasm"))]
pub use rayon::{current_num_threads, prelude::*};
#[cfg(target_family = "wasm")]
pub use sequential::*;

#[cfg(target_family = "wasm")]
mod sequential {
    use core::ops::RangeBounds;
    use core::slice::{Chunks, ChunksExact, ChunksExactMut, ChunksMut, Iter, IterMut};

    /// One.
    pub fn current_num_threads() -> usize {
        1
    }

    /// The iterators of slices.
    pub trait ParallelSlice<T> {
        /// [`slice::iter`].
        fn par_iter(&self) -> Iter<'_, T>;
        /// [`slice::iter_mut`].
        fn par_iter_mut(&mut self) -> IterMut<'_, T>;
        /// [`slice::chunks`].
        fn par_chunks(&self, size: usize) -> Chunks<'_, T>;
        /// [`slice::chunks_exact`].
        fn par_chunks_exact(&self, size: usize) -> ChunksExact<'_, T>;
        /// [`slice::chunks_mut`].
        fn par_chunks_mut(&mut self, size: usize) -> ChunksMut<'_, T>;
        /// [`slice::chunks_exact_mut`].
        fn par_chunks_exact_mut(&mut self, size: usize) -> ChunksExactMut<'_, T>;
    }

    impl<T> ParallelSlice<T> for [T] {
        fn par_iter(&self) -> Iter<'_, T> {
            self.iter()
        }

        fn par_iter_mut(&mut self) -> IterMut<'_, T> {
            self.iter_mut()
        }

        fn par_chunks(&self, size: usize) -> Chunks<'_, T> {
            self.chunks(size)
        }

        fn par_chunks_exact(&self, size: usize) -> ChunksExact<'_, T> {
            self.chunks_exact(size)
        }

        fn par_chunks_mut(&mut self, size: usize) -> ChunksMut<'_, T> {
            self.chunks_mut(size)
        }

        fn par_chunks_exact_mut(&mut self, size: usize) -> ChunksExactMut<'_, T> {
            self.chunks_exact_mut(size)
        }
    }

    /// Draining.
    pub trait ParallelDrain<T> {
        /// [`Vec::drain`].
        fn par_drain(&mut self, range: impl RangeBounds<usize>) -> impl Iterator<Item = T>;
    }

    impl<T> ParallelDrain<T> for Vec<T> {
        fn par_drain(&mut self, range: impl RangeBounds<usize>) -> impl Iterator<Item = T> {
            self.drain(range)
        }
    }

    /// What owns its items.
    pub trait IntoParallelIterator: IntoIterator + Sized {
        /// [`IntoIterator::into_iter`].
        fn into_par_iter(self) -> Self::IntoIter {
            self.into_iter()
        }
    }

    impl<I: IntoIterator> IntoParallelIterator for I {}

    /// What a parallel iterator does and a plain one has no name for.
    pub trait ParallelIterator: Iterator + Sized {
        /// For each item, with something that is made once.
        fn for_each_init<T>(
            self,
            init: impl FnOnce() -> T,
            mut work: impl FnMut(&mut T, Self::Item),
        ) {
            let mut state = init();
            self.for_each(|item| work(&mut state, item));
        }

        /// Of each item, with something that is made once.
        fn map_init<T, R>(
            self,
            init: impl FnOnce() -> T,
            mut work: impl FnMut(&mut T, Self::Item) -> R,
        ) -> impl Iterator<Item = R> {
            let mut state = init();
            self.map(move |item| work(&mut state, item))
        }

        /// [`Iterator::flat_map`].
        fn flat_map_iter<R: IntoIterator>(
            self,
            work: impl FnMut(Self::Item) -> R,
        ) -> impl Iterator<Item = R::Item> {
            self.flat_map(work)
        }

        /// Nothing is divided.
        fn with_min_len(self, _least: usize) -> Self {
            self
        }
    }

    impl<I: Iterator> ParallelIterator for I {}
}
