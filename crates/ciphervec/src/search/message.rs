//! Frames of queries and responses between owner and server.
//!
//! A query: `index id 8 | count u32 | top level u8 | epoch u32 | tags u16 | tags 16 each | body`, the body being float32 rows
//! (`open`), integers (`sealed-index`: 32 bits, 64 in the wide form) or a 32-byte seed and ciphertexts (ring form). One that is
//! about some segments only is a frame of its own kind, with `segments u32 | ids 16 each` before the body.
//! Version 2, ring form alone, says before its body in which words the answer is wanted: `bits of V u8, for levels 0 to the
//! top level`. Version 3 is about half of an answer: after those words
//! `half u8`, 1 for V and 2 for U; its body has for each query a 32-byte seed, and before U its ciphertexts.
//! Version 4 is one query whose server folds clusters: after the words `clusters u32 | probes u32`, the first of the segments
//! named being the clusters; behind the query's ciphertexts which are chosen, encrypted.
//!
//! A response: `index id 8 | count u32 | levels u8 | per level: level u8, mask sums a query | segments u32 | per segment:
//! id 16, rows u32, level u8, filtered u8, bitmap if filtered, one answer a query`. It has the version of the query. One of
//! version 3 says after the count: `half u8 | name of the evaluation keys 16`. One of version 4 begins with a segment for each
//! probe, of a name that says which; with none where a cluster is missing.
//!
//! What is in them, by form:
//!
//! - *compact*: an answer is a word a row;
//! - *ring*: a query has for each vector and piece a seed of 32 and a packed polynomial. An answer of version 1 has for each
//!   block the 4,096 coefficients of V and one of U a row, 24 bits each. From version 2 on V has the bits that the query asked
//!   for, 20 to 32, and U six fewer, each block's rounded up to whole bytes, lowest bits first, without levels and mask sums;
//! - *version 3*: streams 0, 1, … of a query's seed are the masks of its pieces. No seed stands in two messages about U. The
//!   answer names the first 16 bytes of BLAKE3 of the evaluation keys' frame, and has V or U of every block;
//! - *version 4*: behind the query's ciphertexts stand the key of t² (a seed of 32 and two packed polynomials, modulo q and
//!   modulo P), a seed of 32, and a packed polynomial for each ciphertext of numbers. Segments of the answer that are chosen
//!   clusters have the ids 1 to the number of probes as u64, and 8 zeros;
//! - *additive*: the body is the frame of the probes; the answer to all queries is one, its length u64 and the frame of the
//!   encrypted scores.

use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::index::spec::MAX_QUERIES;
use crate::protect::filter::FilterTag;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::lattice::retrieval::ChoiceShape;
use ciphervec_he::lattice::ring::Half;
use ciphervec_he::wire::{self, HEADER_LEN, Header, KeyId, Kind, Reader};
use core::ops::Range;
use std::collections::HashSet;

/// The newest version of queries and of their answers, about folded clusters.
pub const QUERY_VERSION: u16 = 4;
/// The version of queries about half of an answer.
pub const HALF_VERSION: u16 = 3;
/// The version of queries that say in which words their answers are wanted.
pub const WORDS_VERSION: u16 = 2;
/// The most filter tags in one message.
const MAX_TAGS: u16 = 256;
/// Of a response: the index, how many queries, how many levels, how many segments.
const RESPONSE_HEAD: usize = 8 + 4 + 1 + 4;
/// Of a segment in it: its name, its rows, its level, whether it is filtered.
const SEGMENT_HEAD: usize = 16 + 4 + 1 + 1;

/// What a query says in the clear.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueryHead {
    pub count: u32,
    pub top_level: u8,
    pub epoch: u32,
    pub tags: Vec<FilterTag>,
    /// The segments that it is about; `None` for all there are.
    pub segments: Option<Vec<SegmentId>>,
    /// The words that the answer is wanted in, if not those of the first version.
    pub words: Option<WordsAsked>,
    /// The half of the answer that is wanted, if not all of it; there are words then.
    pub half: Option<Half>,
    /// The clusters that are to be folded, if any: the first segments. There are words then, and one query.
    pub fold: Option<ChoiceShape>,
}

/// What the answer about a chosen cluster names as its segment.
pub fn chosen_place(probe: usize) -> SegmentId {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&(probe as u64 + 1).to_le_bytes());
    SegmentId(place)
}

/// What evaluation keys are called: the start of the hash of their frame. Halves of an answer were made with the same ones.
pub type KeysName = [u8; 16];
/// Bytes that half of an answer has more before its levels than a whole one.
pub(super) const HALF_HEAD: usize = 1 + size_of::<KeysName>();

/// The words that an answer is wanted in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WordsAsked {
    /// Bits of V by level.
    pub linear: Vec<u8>,
}

impl QueryHead {
    /// The frame of a query with this head and `body`.
    pub fn frame(&self, spec: &IndexSpec, key: KeyId, body: &[u8]) -> Vec<u8> {
        let named = self.segments.as_ref().map_or(0, |segments| 4 + segments.len() * 16);
        let words = self.words.as_ref().map_or(0, |words| 1 + words.linear.len());
        let length = 19 + self.tags.len() * 16 + named + words + body.len();
        let mut payload = Vec::with_capacity(length);
        payload.extend_from_slice(&spec.id());
        payload.extend_from_slice(&self.count.to_le_bytes());
        payload.push(self.top_level);
        payload.extend_from_slice(&self.epoch.to_le_bytes());
        payload.extend_from_slice(&(self.tags.len() as u16).to_le_bytes());
        self.tags.iter().for_each(|tag| payload.extend_from_slice(tag));
        if let Some(segments) = &self.segments {
            payload.extend_from_slice(&(segments.len() as u32).to_le_bytes());
            segments.iter().for_each(|segment| payload.extend_from_slice(&segment.0));
        }
        let kind = if self.segments.is_some() { Kind::RoutedQuery } else { Kind::Query };
        if let Some(words) = &self.words {
            payload.extend_from_slice(&words.linear);
            payload.extend(self.half.map(half_byte));
            for number in self.fold.iter().flat_map(|fold| [fold.clusters(), fold.probes()]) {
                payload.extend_from_slice(&(number as u32).to_le_bytes());
            }
        }
        payload.extend_from_slice(body);
        let mut frame = vec![0; HEADER_LEN];
        frame.append(&mut payload);
        header(spec, kind, key).seal_version(self.version(), &mut frame);
        frame
    }

    /// The clusters that are to be folded, in order.
    pub fn clusters(&self) -> &[SegmentId] {
        let named = self.segments.as_deref().unwrap_or_default();
        &named[..self.fold.map_or(0, |fold| fold.clusters()).min(named.len())]
    }

    /// The version of the query's format, and of its answer's.
    pub fn version(&self) -> u16 {
        match (&self.words, self.half, &self.fold) {
            (Some(_), _, Some(_)) => QUERY_VERSION,
            (Some(_), Some(_), None) => HALF_VERSION,
            (Some(_), None, None) => WORDS_VERSION,
            (None, ..) => wire::VERSION,
        }
    }

    /// The epoch that a frame names if it is a query, of which nothing is checked.
    pub fn epoch_of(bytes: &[u8]) -> Option<u32> {
        const AT: usize = HEADER_LEN + 8 + 4 + 1;
        bytes.get(AT..)?.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// Reads a query for `spec`: the head, the key it was made with, and the body.
    pub fn open<'a>(spec: &IndexSpec, bytes: &'a [u8]) -> Result<(Self, KeyId, Reader<'a>)> {
        let routed = wire::kind_of(bytes) == Some(Kind::RoutedQuery);
        let kind = if routed { Kind::RoutedQuery } else { Kind::Query };
        let (version, header, payload) = wire::open_version(kind, QUERY_VERSION, bytes)?;
        let what = kind.as_str();
        expect_params(spec, what, &header)?;
        let mut reader = Reader::new(what, payload);
        spec.expect_id(what, reader.array()?)?;
        let count = reader.u32()?;
        if count > MAX_QUERIES {
            return Err(reader
                .error(format!("at most {MAX_QUERIES} queries a message, {count} came"))
                .into());
        }
        let (top_level, epoch) = (reader.u8()?, reader.u32()?);
        let tags = u16::from_le_bytes(reader.array()?);
        if tags > MAX_TAGS {
            return Err(reader
                .error(format!("at most {MAX_TAGS} filter tags, {tags} came"))
                .into());
        }
        let tags = (0..tags).map(|_| reader.array());
        let tags = tags.collect::<core::result::Result<Vec<FilterTag>, _>>()?;
        let segments = if routed { Some(read_segments(&mut reader)?) } else { None };
        let words = match version {
            wire::VERSION => None,
            _ => Some(WordsAsked::read(top_level, &mut reader)?),
        };
        let half = if version == HALF_VERSION { Some(read_half(&mut reader)?) } else { None };
        let fold = match version {
            QUERY_VERSION => {
                if count != 1 || !tags.is_empty() {
                    let detail = format!(
                        "one query without filter tags expected where clusters are folded, {count} queries and {} tags came",
                        tags.len()
                    );
                    return Err(reader.error(detail).into());
                }
                let named = segments.as_ref().map_or(0, Vec::len);
                Some(read_fold(spec, named, &mut reader)?)
            }
            _ => None,
        };
        let head = QueryHead { count, top_level, epoch, tags, segments, words, half, fold };
        Ok((head, header.key, reader))
    }
}

/// How many queries a message has, and the epoch that they were made under.
///
/// # Errors
/// Damaged or foreign bytes, as far as its head says.
pub fn asked_in(spec: &IndexSpec, message: &[u8]) -> Result<(u32, u32)> {
    QueryHead::open(spec, message).map(|(head, ..)| (head.count, head.epoch))
}

impl WordsAsked {
    fn read(top_level: u8, reader: &mut Reader<'_>) -> Result<Self> {
        let linear = reader.take(usize::from(top_level) + 1)?.to_vec();
        Ok(WordsAsked { linear })
    }
}

/// The byte of a half.
pub(super) fn half_byte(half: Half) -> u8 {
    match half {
        Half::Linear => 1,
        Half::Constant => 2,
    }
}

pub(super) fn read_half(reader: &mut Reader<'_>) -> Result<Half> {
    match reader.u8()? {
        1 => Ok(Half::Linear),
        2 => Ok(Half::Constant),
        other => Err(reader.error(format!("half 1 or 2 expected, {other} came")).into()),
    }
}

/// Reads how many clusters are to be folded, which come first among the segments `named`, and how many are chosen.
fn read_fold(spec: &IndexSpec, named: usize, reader: &mut Reader<'_>) -> Result<ChoiceShape> {
    let (clusters, probes) = (reader.u32()? as usize, reader.u32()? as usize);
    if clusters > named {
        let detail =
            format!("{clusters} clusters to fold are more than the {named} segments named");
        return Err(reader.error(detail).into());
    }
    Ok(ChoiceShape::new(spec.dimension(), clusters, probes)?)
}

/// Reads the segments that a query names, none of them twice.
fn read_segments(reader: &mut Reader<'_>) -> Result<Vec<SegmentId>> {
    let count = reader.u32()? as usize;
    let bytes = reader.take(count.saturating_mul(16))?;
    let segments: Vec<SegmentId> =
        bytes.as_chunks::<16>().0.iter().map(|id| SegmentId(*id)).collect();
    let mut seen = HashSet::with_capacity(segments.len());
    if let Some(twice) = segments.iter().find(|segment| !seen.insert(segment.0)) {
        return Err(reader.error(format!("segment {twice} is named twice")).into());
    }
    Ok(segments)
}

pub fn header(spec: &IndexSpec, kind: Kind, key: KeyId) -> Header {
    Header { scheme: spec.wire_scheme(), kind, params: spec.param_id(), key }
}

/// Refuses a frame made under other parameters.
pub fn expect_params(spec: &IndexSpec, what: &'static str, header: &Header) -> Result<()> {
    if header.params == spec.param_id() && header.scheme == spec.wire_scheme() {
        return Ok(());
    }
    let (expected, actual) = (spec.param_id().to_string(), header.params.to_string());
    Err(Error::Scheme(ciphervec_he::Error::Parameters { what, expected, actual }))
}

/// Bytes of a response after its header: with so many of mask sums, and segments of which each has its matching rows, if the
/// query is filtered, and so many bytes of answers.
pub(super) fn response_len<'a>(
    sums: usize,
    segments: impl Iterator<Item = (Option<&'a [bool]>, usize)>,
) -> usize {
    let segment = |(matching, answers): (Option<&[bool]>, usize)| {
        SEGMENT_HEAD + matching.map_or(0, |rows| rows.len().div_ceil(8)) + answers
    };
    RESPONSE_HEAD + sums + segments.map(segment).sum::<usize>()
}

/// Builds a response in place, so that answers are written once.
pub struct ResponseWriter {
    version: u16,
    bytes: Vec<u8>,
}

impl ResponseWriter {
    /// Of the answer to a query with this head; with the name of the evaluation keys that half of one was made with.
    pub fn new(
        spec: &IndexSpec,
        head: &QueryHead,
        keys: &KeysName,
        levels: u8,
        capacity: usize,
    ) -> Self {
        let mut bytes = Vec::with_capacity(HEADER_LEN + capacity);
        bytes.resize(HEADER_LEN, 0);
        bytes.extend_from_slice(&spec.id());
        bytes.extend_from_slice(&head.count.to_le_bytes());
        if let Some(half) = head.half {
            bytes.push(half_byte(half));
            bytes.extend_from_slice(keys);
        }
        bytes.push(levels);
        ResponseWriter { version: head.version(), bytes }
    }

    /// Of an answer that is handed over piece by piece within this process, with so many bytes after its header.
    pub fn in_pieces(
        spec: &IndexSpec,
        head: &QueryHead,
        key: KeyId,
        keys: &KeysName,
        levels: u8,
        payload_len: usize,
    ) -> Self {
        let mut writer = ResponseWriter::new(spec, head, keys, levels, 0);
        let announced = header(spec, Kind::Response, key).announce(writer.version, payload_len);
        writer.bytes[..HEADER_LEN].copy_from_slice(&announced);
        writer
    }

    /// What was written since the last piece.
    pub fn piece(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Where answers are appended.
    pub fn body(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Leaves `length` zero bytes, to be written through [`Self::span`] later.
    pub fn reserve(&mut self, length: usize) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.resize(start + length, 0);
        start..start + length
    }

    /// The bytes of a reserved span.
    pub fn span(&mut self, span: Range<usize>) -> &mut [u8] {
        &mut self.bytes[span]
    }

    /// How many segments follow.
    pub fn segments(&mut self, count: u32) {
        self.bytes.extend_from_slice(&count.to_le_bytes());
    }

    /// The head of one segment's answers.
    pub fn segment(&mut self, id: SegmentId, rows: u32, level: u8, matching: Option<&[bool]>) {
        self.bytes.extend_from_slice(&id.0);
        self.bytes.extend_from_slice(&rows.to_le_bytes());
        self.bytes.push(level);
        self.bytes.push(u8::from(matching.is_some()));
        if let Some(matching) = matching {
            self.bytes.extend(matching.chunks(8).map(|bits| {
                bits.iter().enumerate().fold(0u8, |byte, (bit, &set)| byte | (u8::from(set) << bit))
            }));
        }
    }

    /// The framed response.
    pub fn finish(mut self, spec: &IndexSpec, key: KeyId) -> Vec<u8> {
        header(spec, Kind::Response, key).seal_version(self.version, &mut self.bytes);
        self.bytes
    }
}

/// Reads a bitmap of rows; bits beyond the last row must be zero.
pub fn read_bitmap(reader: &mut Reader<'_>, rows: usize) -> Result<Vec<bool>> {
    let bytes = reader.take(rows.div_ceil(8))?;
    if !rows.is_multiple_of(8) && bytes.last().is_some_and(|last| last >> (rows % 8) != 0) {
        return Err(reader.error("bits beyond the last row").into());
    }
    Ok((0..rows).map(|row| bytes[row / 8] >> (row % 8) & 1 == 1).collect())
}
