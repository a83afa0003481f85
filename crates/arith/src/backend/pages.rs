//! Huge pages: a large buffer enters, advice to back it with them leaves. Linux; elsewhere nothing
//! happens.
#![allow(unsafe_code)]

/// Below this a huge page would be mostly air.
#[cfg(target_os = "linux")]
const WORTH: usize = 4 << 20;
#[cfg(target_os = "linux")]
const PAGE: usize = 4096;

/// A hint: errors are of no consequence and ignored.
#[cfg(target_os = "linux")]
pub(crate) fn prefer_huge(bytes: &mut [u8]) {
    if bytes.len() < WORTH {
        return;
    }
    let skip = bytes.as_ptr().align_offset(PAGE);
    let Some(whole) = bytes.get_mut(skip..) else { return };
    let length = whole.len() / PAGE * PAGE;
    // SAFETY: the range is whole pages inside a live, exclusively borrowed allocation, and this
    // advice changes how they are backed, never what they hold.
    let _ = unsafe { libc::madvise(whole.as_mut_ptr().cast(), length, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn prefer_huge(_bytes: &mut [u8]) {}
