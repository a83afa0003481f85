//! Merged answers: a query and its answers over shares of the segments enter; the answer over all of them leaves. Server
//! only: it reads lengths and moves bytes.
//!
//! What comes out is, bit for bit, what one server with all the segments would have answered: mask sums are the same
//! whoever computes them, and segments stand in the order of the state that was searched.

use super::form;
use super::message::{QUERY_VERSION, QueryHead, ResponseWriter, expect_params};
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::wire::{self, KeyId, Kind, Reader};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What the answer over one share says.
struct Share<'a> {
    key: KeyId,
    /// Mask sums by level.
    sums: Vec<(u8, &'a [u8])>,
    /// Heads and answers by segment.
    segments: Vec<([u8; 16], &'a [u8])>,
}

/// The answer over the segments `order`, which is how a state lists them, or those of them that the query names, from `shares`,
/// the answers over parts of them.
///
/// # Errors
/// Damaged or foreign bytes; shares that have a segment twice, another one, or, where the query has no filter, not all; shares
/// of another query.
pub fn merge_responses(
    spec: &IndexSpec,
    query: &[u8],
    order: &[SegmentId],
    shares: &[&[u8]],
) -> Result<Vec<u8>> {
    // In full: whatever else a query may say of its answer has to be looked at here.
    let (head, _, _) = QueryHead::open(spec, query)?;
    let QueryHead { count: _, top_level: _, epoch: _, tags, words: _, segments: named } = &head;
    let named: Option<HashSet<[u8; 16]>> =
        named.as_ref().map(|segments| segments.iter().map(|id| id.0).collect());
    let is_named = |id: &&SegmentId| named.as_ref().is_none_or(|named| named.contains(&id.0));
    let order: Vec<SegmentId> = order.iter().filter(is_named).copied().collect();
    let read: Vec<Share<'_>> =
        shares.iter().map(|share| read(spec, &head, share)).collect::<Result<_>>()?;
    let Some(key) = read.first().map(|share| share.key) else {
        return Err(wrong("the shares of an answer", "at least 1", 0));
    };
    if let Some(other) = read.iter().find(|share| share.key != key) {
        return Err(wrong("the key of a share", key, other.key));
    }
    let mut sums: BTreeMap<u8, &[u8]> = BTreeMap::new();
    let mut found: HashMap<[u8; 16], &[u8]> = HashMap::new();
    for share in &read {
        for (level, of_level) in &share.sums {
            if *sums.entry(*level).or_insert(of_level) != *of_level {
                let what = "the mask sums of a share";
                return Err(wrong(
                    what,
                    "those of the others",
                    format!("others, at level {level}"),
                ));
            }
        }
        for (id, answer) in &share.segments {
            if found.insert(*id, answer).is_some() {
                let id = SegmentId(*id);
                return Err(wrong("a segment among the shares", "once", format!("{id} twice")));
            }
        }
    }
    let in_order: Vec<&[u8]> = order.iter().filter_map(|id| found.get(&id.0).copied()).collect();
    if in_order.len() != found.len() || tags.is_empty() && in_order.len() != order.len() {
        return Err(wrong(
            "the segments of all shares",
            format!("those of the state, {}", order.len()),
            format!("{}, {} of them its own", found.len(), in_order.len()),
        ));
    }
    let levels = u8::try_from(sums.len())
        .map_err(|_| wrong("the levels of an answer", "below 256", sums.len()))?;
    let bytes = sums.values().chain(&in_order).map(|part| part.len() + 1).sum();
    let mut writer = ResponseWriter::new(spec, &head, levels, bytes);
    for (level, of_level) in sums {
        writer.body().push(level);
        writer.body().extend_from_slice(of_level);
    }
    writer.segments(in_order.len() as u32);
    in_order.iter().for_each(|answer| writer.body().extend_from_slice(answer));
    Ok(writer.finish(spec, key))
}

fn read<'a>(spec: &IndexSpec, head: &QueryHead, share: &'a [u8]) -> Result<Share<'a>> {
    let (count, words) = (head.count, head.words.as_ref());
    let (version, header, payload) = wire::open_version(Kind::Response, QUERY_VERSION, share)?;
    if version != head.version() {
        return Err(wrong("the version of a share", head.version(), version));
    }
    let (what, form) = (Kind::Response.as_str(), form::of(spec));
    expect_params(spec, what, &header)?;
    let mut reader = Reader::new(what, payload);
    spec.expect_id(what, reader.array()?)?;
    let answered = reader.u32()?;
    if answered != count {
        let says = format!("answers to {count} queries expected, {answered} came");
        return Err(reader.error(says).into());
    }
    let queries = count as usize;
    let mut sums = Vec::new();
    for _ in 0..reader.u8()? {
        let level = reader.u8()?;
        sums.push((level, reader.take(queries * form.sums_len(level, words)?)?));
    }
    let mut segments = Vec::new();
    for _ in 0..reader.u32()? {
        let start = payload.len() - reader.remaining();
        let id = reader.array()?;
        let (rows, level, filtered) = (reader.u32()? as usize, reader.u8()?, reader.u8()?);
        if filtered > 1 {
            return Err(reader.error(format!("a filter mark of 0 or 1, {filtered} came")).into());
        }
        if filtered == 1 {
            reader.take(rows.div_ceil(8))?;
        }
        let answer = match form.answer_len(spec, rows, level, words)? {
            Some(length) => queries * length,
            None => usize::try_from(u64::from_le_bytes(reader.array()?)).unwrap_or(usize::MAX),
        };
        reader.take(answer)?;
        segments.push((id, &payload[start..payload.len() - reader.remaining()]));
    }
    reader.finish()?;
    Ok(Share { key: header.key, sums, segments })
}

fn wrong(what: &'static str, expected: impl ToString, actual: impl ToString) -> Error {
    Error::Range { what, expected: expected.to_string(), actual: actual.to_string() }
}
