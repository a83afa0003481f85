//! Overwrites what calls have left of secrets on the stack. Owner only.
//!
//! What holds a secret wipes its own memory when it goes. Values that were moved or returned leave copies in frames that are no
//! longer in use, which nothing else would write over while the page does something else.

use zeroize::Zeroize;

/// Deeper than any call here reaches.
const DEPTH: usize = 256 << 10;

/// Overwrites the stack below the caller.
#[inline(never)]
pub fn stack() {
    let mut frames = [0u8; DEPTH];
    frames.zeroize();
    core::hint::black_box(&frames);
}
