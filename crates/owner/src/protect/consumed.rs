//! Consumed segments: which segments of writers an owner has sealed again or thrown away, so that none of them counts a second
//! time, whoever sends its bytes again. Key owner only; the owner's state names the bytes.
//!
//! Little-endian: `CVCONSUM` | version u32 | writers u32 | each, by name: name's length u16, the name | mark u64 | segments u32 |
//! each, by time: time u64, segment 16.
//!
//! A segment's time is when its writer sealed it, authenticated with its wrapped key. At most [`LIMIT`] segments are named. Beyond
//! that the earliest of the writer with the most leave, and what that writer sealed up to then counts no more: the *mark*.

use crate::decode::{DecodeError, Reader};
use crate::protect::aead::EnvelopeError;
use std::collections::{BTreeMap, BTreeSet};

const MAGIC: &[u8; 8] = b"CVCONSUM";
const VERSION: u32 = 1;
const WHAT: &str = "the list of consumed segments";
/// Segments that are named at most, of all writers: 400 kB.
pub const LIMIT: usize = 16_384;

/// A segment as its writer sealed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// The writer's name.
    pub writer: String,
    /// When, in milliseconds since 1970 by the writer's clock; zero for what was sealed before times were.
    pub time: u64,
    /// The segment's id.
    pub segment: [u8; 16],
}

/// Why a segment does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It was consumed.
    Consumed,
    /// It was sealed so long before those that are named that nobody can tell.
    BeforeMark(u64),
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct OfWriter {
    /// What was sealed before does not count.
    mark: u64,
    segments: BTreeSet<(u64, [u8; 16])>,
}

/// What was consumed of each writer's.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Consumed {
    writers: BTreeMap<String, OfWriter>,
}

impl Consumed {
    /// Why a segment must not count; `None` if it may.
    pub fn refusal(&self, written: &Written) -> Option<Refusal> {
        let of = self.writers.get(&written.writer)?;
        if of.segments.contains(&(written.time, written.segment)) {
            return Some(Refusal::Consumed);
        }
        (written.time < of.mark).then_some(Refusal::BeforeMark(of.mark))
    }

    /// Names one more.
    pub fn add(&mut self, written: Written) {
        let of = self.writers.entry(written.writer).or_default();
        if written.time >= of.mark {
            of.segments.insert((written.time, written.segment));
        }
        self.shrink(LIMIT);
    }

    /// Names all that `other` names as well.
    pub fn merge(&mut self, other: Consumed) {
        for (name, theirs) in other.writers {
            let of = self.writers.entry(name).or_default();
            of.mark = of.mark.max(theirs.mark);
            of.segments.extend(theirs.segments);
            of.segments.retain(|(time, _)| *time >= of.mark);
        }
        self.shrink(LIMIT);
    }

    fn shrink(&mut self, limit: usize) {
        while self.writers.values().map(|of| of.segments.len()).sum::<usize>() > limit {
            let Some(of) = self.writers.values_mut().max_by_key(|of| of.segments.len()) else {
                return;
            };
            let Some((time, _)) = of.segments.pop_first() else { return };
            of.mark = time.saturating_add(1);
            of.segments.retain(|(time, _)| *time >= of.mark);
        }
    }

    /// The bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend((self.writers.len() as u32).to_le_bytes());
        for (name, of) in &self.writers {
            out.extend((name.len() as u16).to_le_bytes());
            out.extend(name.as_bytes());
            out.extend(of.mark.to_le_bytes());
            out.extend((of.segments.len() as u32).to_le_bytes());
            for (time, segment) in &of.segments {
                out.extend(time.to_le_bytes());
                out.extend(segment);
            }
        }
        out
    }

    /// Reads what [`Self::to_bytes`] wrote; no bytes are an empty list.
    ///
    /// # Errors
    /// [`EnvelopeError::Decode`] for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        let mut consumed = Consumed::default();
        if bytes.is_empty() {
            return Ok(consumed);
        }
        let mut reader = Reader::new(WHAT, bytes);
        reader.header(MAGIC, VERSION)?;
        let writers = reader.u32()? as usize;
        reader.need_items(writers, 14)?;
        for _ in 0..writers {
            let length = reader.u16()?;
            let at = reader.offset();
            let name = core::str::from_utf8(reader.take(length.into())?).map(str::to_owned);
            let name = name.map_err(|_| DecodeError::Field {
                what: WHAT,
                field: "a writer's name",
                offset: at,
                expected: "UTF-8".to_owned(),
                actual: "other bytes".to_owned(),
            })?;
            let mark = reader.u64()?;
            let count = reader.u32()? as usize;
            reader.need_items(count, 24)?;
            let segments = (0..count)
                .map(|_| Ok((reader.u64()?, reader.array()?)))
                .collect::<Result<_, EnvelopeError>>()?;
            consumed.writers.insert(name, OfWriter { mark, segments });
        }
        reader.finish()?;
        Ok(consumed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(writer: &str, time: u64, id: u64) -> Written {
        let mut segment = [7; 16];
        segment[..8].copy_from_slice(&id.to_le_bytes());
        Written { writer: writer.to_owned(), time, segment }
    }

    #[test]
    fn what_was_consumed_is_refused_and_nothing_else() {
        let mut consumed = Consumed::default();
        consumed.add(written("door", 5, 1));
        assert_eq!(consumed.refusal(&written("door", 5, 1)), Some(Refusal::Consumed));
        for other in [written("door", 5, 2), written("gate", 5, 1), written("door", 0, 3)] {
            assert_eq!(consumed.refusal(&other), None, "{other:?}");
        }
    }

    #[test]
    fn the_list_is_bounded_and_what_it_forgets_stays_refused() {
        let mut consumed = Consumed::default();
        consumed.add(written("gate", 1, 0));
        let many = LIMIT as u64 + 50;
        (0..many).for_each(|at| consumed.add(written("door", 100 + at, at)));
        assert!(consumed.to_bytes().len() < 24 * (LIMIT + 8));
        assert_eq!(consumed.refusal(&written("gate", 1, 0)), Some(Refusal::Consumed));
        assert_eq!(consumed.refusal(&written("gate", 0, 9)), None, "a mark is one writer's");
        for at in 0..many {
            assert!(consumed.refusal(&written("door", 100 + at, at)).is_some(), "{at}");
        }
        // Late, and later than what was forgotten: an old pending batch may still come.
        assert_eq!(consumed.refusal(&written("door", 100 + many / 2, many)), None);
        assert!(matches!(
            consumed.refusal(&written("door", 99, many)),
            Some(Refusal::BeforeMark(_))
        ));
    }

    #[test]
    fn bytes_come_back_and_lists_add_up() {
        let (mut one, mut two) = (Consumed::default(), Consumed::default());
        one.add(written("door", 5, 1));
        two.add(written("door", 6, 2));
        two.add(written("gate", 7, 3));
        one.merge(two.clone());
        assert_eq!(Consumed::from_bytes(&one.to_bytes()).unwrap(), one);
        assert_eq!(Consumed::from_bytes(&[]).unwrap(), Consumed::default());
        for known in [written("door", 5, 1), written("door", 6, 2), written("gate", 7, 3)] {
            assert_eq!(one.refusal(&known), Some(Refusal::Consumed));
        }
        let bytes = one.to_bytes();
        for length in 1..bytes.len() {
            assert!(Consumed::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
        }
        assert!(Consumed::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }
}
