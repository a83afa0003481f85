//! Prefetch: what will soon be read enters, a hint to the processor to fetch it leaves.
#![allow(unsafe_code)]

use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};

const LINE: usize = 64;

/// Fetches every cache line of a value, if there is one.
#[inline(always)]
#[allow(unused_unsafe)] // Some toolchains we serve declare the prefetch safe, some not.
pub(crate) fn prefetch<T>(value: Option<&T>) {
    let Some(value) = value else { return };
    let start: *const i8 = core::ptr::from_ref(value).cast();
    for offset in (0..size_of::<T>()).step_by(LINE) {
        // SAFETY: a prefetch of any address is allowed; it never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset)) };
    }
}

/// Fetches the cache line `ahead` bytes after a value's start.
#[inline(always)]
#[allow(unused_unsafe)] // As above.
pub(crate) fn prefetch_ahead<T>(value: &T, ahead: usize) {
    let start: *const i8 = core::ptr::from_ref(value).cast();
    // SAFETY: a prefetch of any address is allowed; it never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(ahead)) };
}

/// How far ahead a stream is fetched into the second-level cache, from where what will soon be at
/// hand is fetched into the first: some memory latencies at full bandwidth.
pub(crate) const FAR: usize = 16384;

/// Fetches the cache line `ahead` bytes after a value's start into the second-level cache.
#[inline(always)]
#[allow(unused_unsafe)] // As above.
pub(crate) fn prefetch_far<T>(value: &T, ahead: usize) {
    let start: *const i8 = core::ptr::from_ref(value).cast();
    // SAFETY: a prefetch of any address is allowed; it never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(start.wrapping_add(ahead)) };
}
