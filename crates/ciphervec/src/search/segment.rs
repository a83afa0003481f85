//! Segment: an immutable batch of vectors as the server holds it; its head and its rows. Both sides.

use crate::error::Result;
use ciphervec_arith::AlignedBytes;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::wire::{HEADER_LEN, KeyId};
use std::any::Any;

/// Bytes of the head within a frame.
pub(super) const HEAD_LEN: usize = 64;
/// Words start on a line.
const LINE: usize = 64;
/// Bytes before a segment's words.
pub const HEADROOM: usize = HEADER_LEN + HEAD_LEN;
/// The most rows in one segment.
pub const MAX_ROWS: usize = 1 << 24;

/// What a segment says of itself in the clear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHead {
    /// The nonce it was sealed under, and its name.
    pub id: SegmentId,
    /// Vectors held.
    pub rows: u32,
    /// Those of them whose words are there: all, until deleted ones are taken out.
    pub kept: u32,
    /// The level it is packed for; 0 in forms without a query tree.
    pub level: u8,
    /// The key it was sealed with; zero where vectors are plain.
    pub key: KeyId,
}

impl SegmentHead {
    /// Bytes that a segment starts with and that say what it is.
    pub const LEN: usize = HEADROOM;

    /// Bytes between the head and the words: the bitmap of the rows kept, where some are not.
    #[doc(hidden)]
    pub fn bitmap_len(&self) -> usize {
        if self.kept == self.rows {
            0
        } else {
            (self.rows as usize).div_ceil(8).next_multiple_of(LINE)
        }
    }
}

/// Rows that were parsed into the form that is computed on.
pub(super) trait ParsedRows: Any + Send + Sync {
    /// What they were parsed from.
    ///
    /// # Errors
    /// None that rows which were parsed could meet.
    fn to_bytes(&self) -> Result<Vec<u8>>;
}

/// Rows of a segment in memory.
pub(super) enum SegmentRows {
    /// The framed bytes: words that are scanned where they lie.
    Words(AlignedBytes),
    /// Ciphertexts.
    Parsed(Box<dyn ParsedRows>),
}

/// A checked segment in memory.
pub struct Segment {
    head: SegmentHead,
    len: usize,
    /// Which rows the words are of, where that is not all.
    kept: Option<Vec<bool>>,
    rows: SegmentRows,
}

impl Segment {
    /// Words that were checked; `kept` says of which rows they are, where that is not all.
    pub(super) fn of_words(
        head: SegmentHead,
        kept: Option<Vec<bool>>,
        bytes: AlignedBytes,
    ) -> Self {
        Segment { head, len: bytes.len(), kept, rows: SegmentRows::Words(bytes) }
    }

    /// Rows parsed from a frame of `len` bytes.
    pub(super) fn of_parsed(head: SegmentHead, len: usize, rows: Box<dyn ParsedRows>) -> Self {
        Segment { head, len, kept: None, rows: SegmentRows::Parsed(rows) }
    }

    /// What it says of itself.
    pub fn head(&self) -> &SegmentHead {
        &self.head
    }

    /// Length of the framed bytes.
    pub fn byte_len(&self) -> usize {
        self.len
    }

    /// The words that are scanned; none where rows are parsed.
    pub fn data(&self) -> &[u8] {
        match &self.rows {
            SegmentRows::Words(bytes) => &bytes[HEADROOM + self.head.bitmap_len()..],
            SegmentRows::Parsed(_) => &[],
        }
    }

    /// Rows of this type, where they were parsed into it.
    pub(super) fn parsed<T: ParsedRows>(&self) -> Option<&T> {
        match &self.rows {
            SegmentRows::Words(_) => None,
            SegmentRows::Parsed(rows) => (rows.as_ref() as &dyn Any).downcast_ref(),
        }
    }

    pub(super) fn rows(&self) -> &SegmentRows {
        &self.rows
    }

    /// Which rows the words are of; `None` for all.
    pub(super) fn kept(&self) -> Option<&[bool]> {
        self.kept.as_deref()
    }
}
