//! Hints to the processor to fetch what will soon be read.
#![allow(unsafe_code)]

const LINE: usize = 64;

/// Fetches a cache line into the first-level cache if `NEAR`, else into the second.
#[inline(always)]
#[allow(unused_unsafe)] // Some toolchains we serve declare the prefetch safe, some not.
fn fetch<const NEAR: bool, T>(value: &T, ahead: usize) {
    let line: *const i8 = core::ptr::from_ref(value).cast::<i8>().wrapping_add(ahead);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is allowed; it never faults.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        if NEAR { _mm_prefetch::<_MM_HINT_T0>(line) } else { _mm_prefetch::<_MM_HINT_T1>(line) }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        use core::arch::asm;
        if NEAR {
            asm!("prfm pldl1keep, [{}]", in(reg) line, options(readonly, nostack, preserves_flags));
        } else {
            asm!("prfm pldl2keep, [{}]", in(reg) line, options(readonly, nostack, preserves_flags));
        }
    }
}

/// Fetches every cache line of a value, if there is one.
#[inline(always)]
pub(crate) fn prefetch<T>(value: Option<&T>) {
    let Some(value) = value else { return };
    for offset in (0..size_of::<T>()).step_by(LINE) {
        fetch::<true, T>(value, offset);
    }
}

/// Fetches the cache line `ahead` bytes after a value's start.
#[inline(always)]
pub(crate) fn prefetch_ahead<T>(value: &T, ahead: usize) {
    fetch::<true, T>(value, ahead);
}

/// How far ahead a stream is fetched into the second-level cache, from where what will soon be at
/// hand is fetched into the first: some memory latencies at full bandwidth.
pub(crate) const FAR: usize = 16384;

/// Fetches the cache line `ahead` bytes after a value's start into the second-level cache.
#[inline(always)]
pub(crate) fn prefetch_far<T>(value: &T, ahead: usize) {
    fetch::<false, T>(value, ahead);
}
