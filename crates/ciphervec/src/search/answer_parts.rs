//! Finds an answer's mask sums and segments in its bytes, by the head of its query. It reads lengths alone and decrypts
//! nothing.

use super::form;
use super::message::{KeysName, QUERY_VERSION, QueryHead, expect_params, half_byte};
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::wire::{self, KeyId, Kind, Reader};

/// What one answer says, or half of one.
pub struct AnswerParts<'a> {
    pub key: KeyId,
    /// Of the evaluation keys that half of an answer was made with.
    pub keys: KeysName,
    /// Mask sums by level.
    pub sums: Vec<(u8, &'a [u8])>,
    pub segments: Vec<SegmentPart<'a>>,
}

/// The answers of one segment.
pub struct SegmentPart<'a> {
    pub id: SegmentId,
    pub rows: usize,
    pub level: u8,
    /// Whether it says which rows match.
    pub filtered: bool,
    /// What it says of itself, which rows match, and the answers.
    pub bytes: &'a [u8],
    /// The answers alone, one query after the other.
    pub answers: &'a [u8],
}

impl SegmentPart<'_> {
    /// What comes before the answers.
    pub fn head(&self) -> &[u8] {
        &self.bytes[..self.bytes.len() - self.answers.len()]
    }
}

impl<'a> AnswerParts<'a> {
    /// Reads the answer to a query with this head.
    ///
    /// # Errors
    /// Damaged or foreign bytes, or the answer to another query.
    pub fn read(spec: &IndexSpec, head: &QueryHead, answer: &'a [u8]) -> Result<Self> {
        let (version, header, payload) = wire::open_version(Kind::Response, QUERY_VERSION, answer)?;
        let what = Kind::Response.as_str();
        let mut reader = Reader::new(what, payload);
        if version != head.version() {
            let asked = head.version();
            let detail = format!("version {asked} was asked for, version {version} came");
            return Err(reader.error(detail).into());
        }
        expect_params(spec, what, &header)?;
        spec.expect_id(what, reader.array()?)?;
        let answered = reader.u32()?;
        if answered != head.count {
            let detail = format!("answers to {} queries expected, {answered} came", head.count);
            return Err(reader.error(detail).into());
        }
        let mut keys = KeysName::default();
        if let Some(half) = head.half.map(half_byte) {
            let came = reader.u8()?;
            if came != half {
                let detail = format!("half {half} of an answer expected, half {came} came");
                return Err(reader.error(detail).into());
            }
            keys = reader.array()?;
        }
        let mut sums = Vec::new();
        for _ in 0..reader.u8()? {
            let level = reader.u8()?;
            sums.push((level, reader.take(sums_len(spec, head, level)?)?));
        }
        let mut segments = Vec::new();
        for _ in 0..reader.u32()? {
            segments.push(Self::segment(spec, head, payload, &mut reader)?);
        }
        reader.finish()?;
        Ok(AnswerParts { key: header.key, keys, sums, segments })
    }

    fn segment(
        spec: &IndexSpec,
        head: &QueryHead,
        payload: &'a [u8],
        reader: &mut Reader<'a>,
    ) -> Result<SegmentPart<'a>> {
        let start = payload.len() - reader.remaining();
        let id = SegmentId(reader.array()?);
        let (rows, level, filtered) = (reader.u32()? as usize, reader.u8()?, reader.u8()?);
        if filtered > 1 {
            return Err(reader.error(format!("a filter mark of 0 or 1, {filtered} came")).into());
        }
        if filtered == 1 {
            reader.take(rows.div_ceil(8))?;
        }
        let length = match answer_len(spec, head, rows, level)? {
            Some(length) => (head.count as usize).saturating_mul(length),
            None => usize::try_from(u64::from_le_bytes(reader.array()?)).unwrap_or(usize::MAX),
        };
        let answers = reader.take(length)?;
        let bytes = &payload[start..payload.len() - reader.remaining()];
        Ok(SegmentPart { id, rows, level, filtered: filtered == 1, bytes, answers })
    }
}

/// Bytes of what one query is answered with over so many rows: all of it, or the half that was asked for. `None` where the
/// answers say so themselves.
///
/// # Errors
/// A level that is none, or that no words were asked for; half of an answer of a form that has none.
pub(super) fn answer_len(
    spec: &IndexSpec,
    head: &QueryHead,
    rows: usize,
    level: u8,
) -> Result<Option<usize>> {
    let (form, words) = (form::of(spec), head.words.as_ref());
    match head.half {
        None => form.answer_len(spec, rows, level, words),
        Some(half) => {
            let halves = form.halves().ok_or_else(|| no_halves(spec))?;
            halves.half_len(spec, rows, level, words, half).map(Some)
        }
    }
}

/// Bytes that an answer has for this level and all queries.
fn sums_len(spec: &IndexSpec, head: &QueryHead, level: u8) -> Result<usize> {
    let (form, words) = (form::of(spec), head.words.as_ref());
    Ok((head.count as usize).saturating_mul(form.sums_len(level, words)?))
}

/// The error of a mode whose answers have no half that could be had ahead.
pub fn no_halves(spec: &IndexSpec) -> Error {
    let known = "sealed or sealed-query, whose answers have a half that can be fetched ahead";
    Error::choice("mode", known, spec.mode().as_str())
}
