//! The frame of a segment: a checked head and its rows.
//!
//! The payload starts with 64 bytes, `segment id 16 | index id 8 | rows u32 | level u8 | whether pruned u8 | zeros 2 | rows
//! kept u32 | zeros`, so that the words that follow lie on a cache line wherever the frame does. Under an additively
//! homomorphic scheme the frame of the encrypted vectors follows instead.
//!
//! Servers of release 0.1 took deleted rows out of segments in the compact form, which takes no key. Of such a segment a bitmap
//! of the rows kept comes before the words, up to a multiple of 64 bytes. Numbers of rows stay what they were, and so does the
//! length of an answer: rows that are not there score zero. Of segments with check sums nobody takes rows out: what
//! is left could not be told from what was changed.
//!
//! The words:
//!
//! - *plain* (`open`): float32 rows of unit length, row by row;
//! - *compact* (`sealed-index`): words of 3, 4 or 8 bytes in tiles of 64 vectors, the last one with what is left, a tile by
//!   dimension and then by vector: exactly rows × dimension words. A pruned segment has its bitmap, row 0 in the lowest bit of
//!   the first byte, and kept rows × dimension words. The owner refuses one that lacks live rows;
//! - *ring* (`sealed`, `sealed-query`): polynomials in NTT form, 50 bits a residue, 8 residues to a strip of 50 bytes, ordered
//!   by strip, group of 4 blocks, node and block of the group, the last group as narrow as what is left. The level fixes the
//!   places of vectors.

use super::form;
use super::message::{expect_params, header, read_bitmap};
use super::segment::{HEAD_LEN, HEADROOM, MAX_ROWS, Segment, SegmentHead, SegmentRows};
use crate::error::Result;
use crate::index::spec::IndexSpec;
use ciphervec_arith::AlignedBytes;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::wire::{self, HEADER_LEN, Header, KeyId, Kind, Reader};
use std::borrow::Cow;

impl SegmentHead {
    /// Reads the head of a whole, undamaged segment of `spec`.
    ///
    /// # Errors
    /// Damaged bytes, another index, lengths that do not follow from the head.
    pub fn read(spec: &IndexSpec, bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Segment, bytes)?;
        Self::read_payload(spec, &header, payload, payload.len())
    }

    /// Reads the head from the first [`SegmentHead::LEN`] bytes of a segment of `len` bytes, whose checksum is not looked at:
    /// whoever stored them vouches for them.
    ///
    /// # Errors
    /// As [`SegmentHead::read`], but for damage behind the head.
    pub fn read_start(spec: &IndexSpec, start: &[u8], len: usize) -> Result<Self> {
        let (header, payload) = wire::open_start(Kind::Segment, start, len)?;
        Self::read_payload(spec, &header, payload, len.saturating_sub(HEADER_LEN))
    }

    fn read_payload(spec: &IndexSpec, header: &Header, payload: &[u8], len: usize) -> Result<Self> {
        let (what, form) = (Kind::Segment.as_str(), form::of(spec));
        expect_params(spec, what, header)?;
        let mut reader = Reader::new(what, payload);
        let id = SegmentId(reader.array()?);
        spec.expect_id(what, reader.array()?)?;
        let (rows, level, pruned) = (reader.u32()?, reader.u8()?, reader.u8()?);
        let (gap, kept) = (reader.take(2)?, reader.u32()?);
        if gap.iter().chain(reader.take(HEAD_LEN - 36)?).any(|&byte| byte != 0) {
            return Err(reader.error("reserved bytes must be zero").into());
        }
        let kept = match (pruned, kept) {
            (0, 0) => rows,
            (1, kept) if form.pruned().is_some() && kept > 0 && kept < rows => kept,
            _ => {
                let detail =
                    format!("{kept} of {rows} rows kept, marked {pruned}, are not possible here");
                return Err(reader.error(detail).into());
            }
        };
        if rows == 0 || rows as usize > MAX_ROWS {
            return Err(reader.error(format!("1 to {MAX_ROWS} rows expected, {rows} came")).into());
        }
        if level != 0 && !form.has_levels() {
            return Err(reader.error(format!("level 0 expected, {level} came")).into());
        }
        if form.encrypts_rows() == (header.key == KeyId::default()) {
            return Err(reader.error("the key id does not fit the mode").into());
        }
        let head = SegmentHead { id, rows, kept, level, key: header.key };
        let data = len.saturating_sub(HEAD_LEN);
        if let Some(words) = form.words_len(spec, kept as usize, level)?
            && data != head.bitmap_len() + words
        {
            let expected = head.bitmap_len() + words;
            let detail = format!("{expected} bytes expected for {rows} rows, {data} came");
            return Err(reader.error(detail).into());
        }
        Ok(head)
    }

    /// Which rows are kept; `None` for all. `data` is what follows the head.
    #[doc(hidden)]
    pub fn read_kept(&self, data: &[u8]) -> Result<Option<Vec<bool>>> {
        if self.kept == self.rows {
            return Ok(None);
        }
        let mut reader = Reader::new(Kind::Segment.as_str(), data);
        let kept = read_bitmap(&mut reader, self.rows as usize)?;
        let padding = self.bitmap_len() - (self.rows as usize).div_ceil(8);
        if reader.take(padding)?.iter().any(|&byte| byte != 0) {
            return Err(reader.error("bytes behind the bitmap must be zero").into());
        }
        let count = kept.iter().filter(|kept| **kept).count();
        if count != self.kept as usize {
            let detail = format!("{} rows kept expected, the bitmap has {count}", self.kept);
            return Err(reader.error(detail).into());
        }
        Ok(Some(kept))
    }

    fn header(&self, spec: &IndexSpec) -> Header {
        header(spec, Kind::Segment, self.key)
    }

    fn write(&self, spec: &IndexSpec, head: &mut [u8]) {
        head[..16].copy_from_slice(&self.id.0);
        head[16..][..8].copy_from_slice(&spec.id());
        head[24..][..4].copy_from_slice(&self.rows.to_le_bytes());
        head[28] = self.level;
        if self.kept != self.rows {
            head[29] = 1;
            head[32..][..4].copy_from_slice(&self.kept.to_le_bytes());
        }
    }

    /// Turns `bytes`, words behind [`HEADROOM`] free bytes, into a framed segment.
    #[doc(hidden)]
    pub fn frame(&self, spec: &IndexSpec, mut bytes: AlignedBytes) -> AlignedBytes {
        let frame = bytes.as_mut_slice();
        self.write(spec, &mut frame[HEADER_LEN..]);
        self.header(spec).seal(frame);
        bytes
    }
}

impl Segment {
    /// The framed bytes, of an index of `spec`.
    ///
    /// # Errors
    /// None that a segment of `spec` could meet.
    pub fn to_bytes(&self, spec: &IndexSpec) -> Result<Cow<'_, [u8]>> {
        match self.rows() {
            SegmentRows::Words(bytes) => Ok(Cow::Borrowed(bytes.as_slice())),
            SegmentRows::Parsed(rows) => {
                let mut frame = vec![0; HEADROOM];
                self.head().write(spec, &mut frame[HEADER_LEN..]);
                frame.extend_from_slice(&rows.to_bytes()?);
                self.head().header(spec).seal(&mut frame);
                Ok(Cow::Owned(frame))
            }
        }
    }
}
