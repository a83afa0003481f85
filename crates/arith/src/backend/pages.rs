//! Advice to Linux on the pages behind a large buffer: back them with huge ones, or take them back.
//! Elsewhere nothing happens.
#![allow(unsafe_code)]

/// Below this a huge page would be mostly air.
#[cfg(target_os = "linux")]
const WORTH: usize = 4 << 20;
/// The smallest page that any of its processors has, and a multiple of which the others have: advice
/// that starts elsewhere is refused.
#[cfg(target_os = "linux")]
const PAGE: usize = 4096;

/// A hint: errors are of no consequence and ignored.
#[cfg(target_os = "linux")]
pub(crate) fn prefer_huge(bytes: &mut [u8]) {
    if bytes.len() < WORTH {
        return;
    }
    let Some(whole) = whole_pages(bytes) else { return };
    // SAFETY: the range is whole pages inside a live, exclusively borrowed allocation, and this
    // advice changes how they are backed, never what they hold.
    let _ = unsafe { libc::madvise(whole.as_mut_ptr().cast(), whole.len(), libc::MADV_HUGEPAGE) };
}

/// Likewise a hint; where it is taken the whole pages hold zeros.
#[cfg(target_os = "linux")]
pub(crate) fn give_back(bytes: &mut [u8]) {
    let Some(whole) = whole_pages(bytes) else { return };
    // SAFETY: the range is whole pages inside a live, exclusively borrowed allocation; whatever they
    // hold afterwards is bytes.
    let _ = unsafe { libc::madvise(whole.as_mut_ptr().cast(), whole.len(), libc::MADV_DONTNEED) };
}

/// The whole pages of a buffer, if it has any.
#[cfg(target_os = "linux")]
fn whole_pages(bytes: &mut [u8]) -> Option<&mut [u8]> {
    let skip = bytes.as_ptr().align_offset(PAGE);
    let whole = bytes.get_mut(skip..)?;
    let length = whole.len() / PAGE * PAGE;
    whole.get_mut(..length).filter(|pages| !pages.is_empty())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn prefer_huge(_bytes: &mut [u8]) {}

#[cfg(not(target_os = "linux"))]
pub(crate) fn give_back(_bytes: &mut [u8]) {}
