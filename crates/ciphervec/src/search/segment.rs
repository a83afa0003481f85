//! Segments: immutable batches of vectors as the server holds them. Framed bytes enter, a checked segment leaves. Both sides.
//!
//! The payload starts with 64 bytes, `segment id 16 | index id 8 | rows u32 | level u8 | whether pruned u8 | zeros 2 | rows kept
//! u32 | zeros`, so that the words that follow lie on a cache line wherever the frame does. Under an additively homomorphic
//! scheme the frame of the encrypted vectors follows instead.
//!
//! In the compact form deleted rows can be taken out without a key. Of a segment that was pruned a bitmap of the rows kept
//! comes before the words, up to a multiple of 64 bytes. Numbers of rows stay what they were, and so does the length of an
//! answer: rows that are not there score zero, and only their owner knew what they were.

use super::additive::{Evaluator, Gallery};
use crate::error::Result;
use crate::message::{expect_params, header, read_bitmap};
use crate::{IndexSpec, Mode};
use ciphervec_arith::AlignedBytes;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::lattice::compact;
use ciphervec_he::lattice::ring::{Layout, Ring};
use ciphervec_he::wire::{self, HEADER_LEN, Header, KeyId, Kind, Reader};
use std::borrow::Cow;

const HEAD_LEN: usize = 64;
/// Words start on a line.
const LINE: usize = 64;
/// Bytes before a segment's words.
pub(crate) const HEADROOM: usize = HEADER_LEN + HEAD_LEN;
/// The most rows in one segment.
pub(crate) const MAX_ROWS: usize = 1 << 24;

/// What a segment says of itself in the clear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHead {
    /// The nonce it was sealed under, and its name.
    pub id: SegmentId,
    /// Vectors held.
    pub rows: u32,
    /// Those of them whose words are there: all, until deleted ones are taken out.
    pub kept: u32,
    /// The level it is packed for; 0 in the compact form.
    pub level: u8,
    /// The key it was sealed with; zero where vectors are plain.
    pub key: KeyId,
}

impl SegmentHead {
    /// Bytes that a segment starts with and that say what it is.
    pub const LEN: usize = HEADROOM;

    /// Bytes of the words of a segment of this head; `None` where they are a frame, which checks its own length.
    fn data_len(&self, spec: &IndexSpec) -> Result<Option<usize>> {
        if spec.scheme().is_additive() {
            return Ok(None);
        }
        let (rows, dimension) = (self.rows as usize, spec.dimension());
        Ok(Some(match spec.mode() {
            Mode::Open => rows * dimension * 4,
            Mode::SealedIndex => {
                let form = spec.precision().form();
                self.bitmap_len() + form.words_len(self.kept as usize, dimension)
            }
            Mode::SealedQuery | Mode::Sealed => {
                Layout::new(dimension, self.level)?.packed_len(rows)
            }
        }))
    }

    /// Bytes between the head and the words: the bitmap of the rows kept, where some are not.
    fn bitmap_len(&self) -> usize {
        if self.kept == self.rows {
            0
        } else {
            (self.rows as usize).div_ceil(8).next_multiple_of(LINE)
        }
    }

    /// Which rows are kept; `None` for all. `data` is what follows the head.
    fn read_kept(&self, data: &[u8]) -> Result<Option<Vec<bool>>> {
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

    /// Turns `bytes`, sealed words behind [`HEADROOM`] free bytes, into a framed segment.
    #[cfg(feature = "client")]
    pub(crate) fn frame(&self, spec: &IndexSpec, mut bytes: AlignedBytes) -> AlignedBytes {
        let frame = bytes.as_mut_slice();
        self.write(spec, &mut frame[HEADER_LEN..]);
        self.header(spec).seal(frame);
        bytes
    }

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
        let what = Kind::Segment.as_str();
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
            (1, kept) if spec.is_compact() && kept > 0 && kept < rows => kept,
            _ => {
                let detail =
                    format!("{kept} of {rows} rows kept, marked {pruned}, are not possible here");
                return Err(reader.error(detail).into());
            }
        };
        if rows == 0 || rows as usize > MAX_ROWS {
            return Err(reader.error(format!("1 to {MAX_ROWS} rows expected, {rows} came")).into());
        }
        if level != 0 && !spec.mode().encrypts_queries() {
            return Err(reader.error(format!("level 0 expected, {level} came")).into());
        }
        if spec.mode().encrypts_index() == (header.key == KeyId::default()) {
            return Err(reader.error("the key id does not fit the mode").into());
        }
        let head = SegmentHead { id, rows, kept, level, key: header.key };
        let data = len.saturating_sub(HEAD_LEN);
        if let Some(expected) = head.data_len(spec)?
            && data != expected
        {
            let detail = format!("{expected} bytes expected for {rows} rows, {data} came");
            return Err(reader.error(detail).into());
        }
        Ok(head)
    }
}

/// A checked segment in memory.
pub struct Segment {
    head: SegmentHead,
    len: usize,
    /// Which rows the words are of, where that is not all.
    kept: Option<Vec<bool>>,
    body: Body,
}

enum Body {
    /// The framed bytes: words that are scanned where they lie.
    Words(AlignedBytes),
    /// Encrypted vectors in the form that is computed on.
    Vectors(Box<dyn Gallery>),
}

impl Segment {
    /// Checks `bytes` against `spec`, residues included.
    ///
    /// # Errors
    /// As [`SegmentHead::read`], and residues at or above the modulus.
    pub fn from_bytes(spec: &IndexSpec, ring: Option<&Ring>, bytes: AlignedBytes) -> Result<Self> {
        let head = SegmentHead::read(spec, &bytes)?;
        Self::of_words(spec, ring, head, bytes)
    }

    /// The same for bytes that whoever stored them has just checked: the checksum is not computed a second time.
    ///
    /// # Errors
    /// As [`Segment::from_bytes`], but for damage behind the head.
    pub(super) fn from_checked(
        spec: &IndexSpec,
        ring: Option<&Ring>,
        bytes: AlignedBytes,
    ) -> Result<Self> {
        let head = SegmentHead::read_start(spec, &bytes, bytes.len())?;
        Self::of_words(spec, ring, head, bytes)
    }

    fn of_words(
        spec: &IndexSpec,
        ring: Option<&Ring>,
        head: SegmentHead,
        bytes: AlignedBytes,
    ) -> Result<Self> {
        if let Some(ring) = ring {
            ring.check_packed(&bytes[HEADROOM..])?;
        }
        if spec.mode() == Mode::Open {
            let words = bytes[HEADROOM..].as_chunks::<4>().0;
            if words.iter().any(|word| !f32::from_le_bytes(*word).is_finite()) {
                return Err(Reader::new(Kind::Segment.as_str(), &[])
                    .error("finite numbers expected")
                    .into());
            }
        }
        let kept = head.read_kept(&bytes[HEADROOM..])?;
        Ok(Segment { head, len: bytes.len(), kept, body: Body::Words(bytes) })
    }

    /// The same under an additively homomorphic scheme.
    ///
    /// # Errors
    /// As [`SegmentHead::read`]; another key, ciphertexts that it cannot have made.
    pub(super) fn of_vectors(
        spec: &IndexSpec,
        public: &dyn Evaluator,
        bytes: &[u8],
    ) -> Result<Self> {
        let head = SegmentHead::read(spec, bytes)?;
        if head.key != public.key_id() {
            return Err(ciphervec_he::Error::WrongKey {
                what: Kind::Segment.as_str(),
                expected: public.key_id(),
                actual: head.key,
            }
            .into());
        }
        let vectors = public.read(spec, head.rows, &bytes[HEADROOM..])?;
        Ok(Segment { head, len: bytes.len(), kept: None, body: Body::Vectors(vectors) })
    }

    /// What it says of itself.
    pub fn head(&self) -> &SegmentHead {
        &self.head
    }

    /// The words that are scanned; none under an additively homomorphic scheme.
    pub fn data(&self) -> &[u8] {
        match &self.body {
            Body::Words(bytes) => &bytes[HEADROOM + self.head.bitmap_len()..],
            Body::Vectors(_) => &[],
        }
    }

    /// The compact form's product of every row with every query (`queries` are rows of integers): words, query by query.
    pub(super) fn scan(&self, spec: &IndexSpec, queries: &[i64], out: &mut Vec<u8>) {
        let (form, rows) = (spec.precision().form(), self.head.kept as usize);
        match &self.kept {
            None => compact::scan(form, self.data(), rows, spec.dimension(), queries, out),
            Some(kept) => {
                let mut sums = Vec::new();
                compact::scan(form, self.data(), rows, spec.dimension(), queries, &mut sums);
                compact::spread_sums(form, &sums, kept, out);
            }
        }
    }

    /// The same segment without the words of rows that are deleted; `None` where none can be taken out: in other forms than
    /// the compact one, or where nothing would change, or nothing be left.
    pub fn prune(&self, spec: &IndexSpec, deleted: impl Fn(u32) -> bool) -> Option<AlignedBytes> {
        if !spec.is_compact() {
            return None;
        }
        let there = |row: u32| self.kept.as_ref().is_none_or(|kept| kept[row as usize]);
        let keep: Vec<bool> = (0..self.head.rows).map(|row| there(row) && !deleted(row)).collect();
        let kept = keep.iter().filter(|keep| **keep).count() as u32;
        if kept == self.head.kept || kept == 0 {
            return None;
        }
        let head = SegmentHead { kept, ..self.head };
        let (form, dimension) = (spec.precision().form(), spec.dimension());
        let start = HEADROOM + head.bitmap_len();
        let mut frame = AlignedBytes::zeroed(start + form.words_len(kept as usize, dimension));
        let (front, words) = frame.as_mut_slice().split_at_mut(start);
        for (row, _) in keep.iter().enumerate().filter(|(_, keep)| **keep) {
            front[HEADROOM + row / 8] |= 1 << (row % 8);
        }
        // Of the rows that are there, those that stay.
        let among: Vec<bool> =
            (0..self.head.rows).filter(|&row| there(row)).map(|row| keep[row as usize]).collect();
        compact::prune(form, self.data(), dimension, &among, words);
        head.write(spec, &mut front[HEADER_LEN..]);
        head.header(spec).seal(frame.as_mut_slice());
        Some(frame)
    }

    /// Encrypted vectors of an additively homomorphic scheme.
    pub(super) fn vectors(&self) -> Option<&dyn Gallery> {
        match &self.body {
            Body::Words(_) => None,
            Body::Vectors(vectors) => Some(vectors.as_ref()),
        }
    }

    /// Length of the framed bytes.
    pub fn byte_len(&self) -> usize {
        self.len
    }

    /// The framed bytes, of an index of `spec`.
    ///
    /// # Errors
    /// None that a segment of `spec` could meet.
    pub fn to_bytes(&self, spec: &IndexSpec) -> Result<Cow<'_, [u8]>> {
        match &self.body {
            Body::Words(bytes) => Ok(Cow::Borrowed(bytes.as_slice())),
            Body::Vectors(vectors) => {
                let mut frame = vec![0; HEADROOM];
                self.head.write(spec, &mut frame[HEADER_LEN..]);
                frame.extend_from_slice(&vectors.to_bytes()?);
                self.head.header(spec).seal(&mut frame);
                Ok(Cow::Owned(frame))
            }
        }
    }
}

/// The words of all rows of a segment whose head [`SegmentHead::read`] gave; zeros for rows that were taken out.
#[cfg(feature = "client")]
pub(crate) fn words<'a>(
    spec: &IndexSpec,
    head: &SegmentHead,
    bytes: &'a [u8],
) -> Result<Cow<'a, [u8]>> {
    let data = &bytes[HEADROOM..];
    Ok(match head.read_kept(data)? {
        None => Cow::Borrowed(data),
        Some(kept) => {
            let words = &data[head.bitmap_len()..];
            Cow::Owned(compact::spread(spec.precision().form(), words, spec.dimension(), &kept))
        }
    })
}
