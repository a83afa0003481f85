//! Merges the answers to one query over shares of the segments into the answer over all. The server reads lengths and moves
//! bytes.
//!
//! What comes out is, bit for bit, what one server with all the segments would have answered: mask sums are the same
//! whoever computes them, and segments stand in the order of the state that was searched.

use super::answer_parts::{AnswerParts, SegmentPart};
use super::message::{QueryHead, ResponseWriter};
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use ciphervec_he::lattice::SegmentId;
use std::collections::{BTreeMap, HashMap, HashSet};

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
    let QueryHead {
        count: _,
        top_level: _,
        epoch: _,
        tags,
        words: _,
        segments: named,
        half: _,
        fold,
    } = &head;
    if fold.is_some() {
        return Err(wrong(
            "a query whose clusters are folded",
            "one server with all of them",
            "shares",
        ));
    }
    let named: Option<HashSet<[u8; 16]>> =
        named.as_ref().map(|segments| segments.iter().map(|id| id.0).collect());
    let is_named = |id: &&SegmentId| named.as_ref().is_none_or(|named| named.contains(&id.0));
    let order: Vec<SegmentId> = order.iter().filter(is_named).copied().collect();
    let read: Vec<AnswerParts<'_>> =
        shares.iter().map(|share| AnswerParts::read(spec, &head, share)).collect::<Result<_>>()?;
    let Some((key, keys)) = read.first().map(|share| (share.key, share.keys)) else {
        return Err(wrong("the shares of an answer", "at least 1", 0));
    };
    if let Some(other) = read.iter().find(|share| share.key != key) {
        return Err(wrong("the key of a share", key, other.key));
    }
    if read.iter().any(|share| share.keys != keys) {
        return Err(wrong("the evaluation keys of a share", "those of the others", "other ones"));
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
        for SegmentPart { id, bytes, .. } in &share.segments {
            if found.insert(id.0, bytes).is_some() {
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
    let mut writer = ResponseWriter::new(spec, &head, &keys, levels, bytes);
    for (level, of_level) in sums {
        writer.body().push(level);
        writer.body().extend_from_slice(of_level);
    }
    writer.segments(in_order.len() as u32);
    in_order.iter().for_each(|answer| writer.body().extend_from_slice(answer));
    Ok(writer.finish(spec, key))
}

fn wrong(what: &'static str, expected: impl ToString, actual: impl ToString) -> Error {
    Error::Range { what, expected: expected.to_string(), actual: actual.to_string() }
}
