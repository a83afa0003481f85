//! Terms: which words the documents of one segment have, and how often, for the key holder, who ranks by them; or which indices its
//! sparse vectors have, with what weight. A table that was read has its words in ascending order, and of each its rows, each once and
//! each within the segment.
//!
//! Stored: the kind, rows, then word after word its length and bytes, the length of its places, and these: by row, as the step from
//! the row before, and times. All numbers but the kind are LEB128, in as few bytes as they need. An index is a word of decimal digits,
//! and the bits of its weight are how often it is there.
//!
//! The kind is 1 for words, 2 for weights. They are the one record of the blob `terms`, of the id `ciphervec words of a segment`;
//! a writer's segment has none that is read.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::records::record::Record;
use crate::records::sparse::Kind;
use crate::records::words::each_word;

/// Rows that have a word, ascending, and how often each has it.
type Places = Vec<(u32, u32)>;

/// The words of a segment that is being made.
pub struct TermsBuilder {
    kind: Kind,
    rows: u32,
    places: HashMap<Box<str>, Places>,
}

impl TermsBuilder {
    /// Of so many rows, which have no words yet.
    pub fn new(kind: Kind, rows: u32) -> Self {
        TermsBuilder { kind, rows, places: HashMap::new() }
    }

    /// Takes in the record of a row, after those of the rows before it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where bytes are no record.
    pub fn set(&mut self, row: u32, record: &[u8]) -> Result<()> {
        let Record { document, sparse, .. } = Record::read(record)?;
        match self.kind {
            Kind::Words => each_word(&document.unwrap_or_default(), |word| {
                self.put(word, |places| match places.last_mut() {
                    Some((last, times)) if *last == row => *times = times.saturating_add(1),
                    _ => places.push((row, 1)),
                });
            }),
            Kind::Weights => sparse.unwrap_or_default().pairs().for_each(|(index, weight)| {
                self.put(&index.to_string(), |places| places.push((row, weight.to_bits())));
            }),
        }
        Ok(())
    }

    fn put(&mut self, word: &str, change: impl FnOnce(&mut Places)) {
        match self.places.get_mut(word) {
            Some(places) => change(places),
            None => change(self.places.entry(word.into()).or_default()),
        }
    }

    /// As it is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![self.kind as u8];
        put(&mut out, self.rows.into());
        let mut packed = Vec::new();
        let mut words: Vec<_> = self.places.iter().collect();
        words.sort_unstable_by_key(|(word, _)| *word);
        for (word, places) in words {
            put(&mut out, word.len() as u64);
            out.extend_from_slice(word.as_bytes());
            packed.clear();
            let mut next = 0;
            for (row, times) in places {
                put(&mut packed, u64::from(row - next));
                put(&mut packed, u64::from(*times));
                next = row + 1;
            }
            put(&mut out, packed.len() as u64);
            out.extend_from_slice(&packed);
        }
        out
    }
}

/// The words of a segment.
#[derive(Debug)]
pub struct Terms {
    bytes: Box<[u8]>,
    /// Where each word begins.
    starts: Vec<usize>,
    /// Words of each row, as often as they are there.
    lengths: Vec<u32>,
}

impl Terms {
    /// Reads what [`TermsBuilder::to_bytes`] wrote of a segment of so many rows.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for other bytes.
    pub fn read(bytes: &[u8], kind: Kind, rows: u32) -> Result<Self> {
        let (starts, lengths) = checked(bytes, kind, rows).map_err(|says| {
            Error::Corrupt(format!("the words of a segment of {rows} rows are damaged: {says}."))
        })?;
        Ok(Terms { bytes: bytes.into(), starts, lengths })
    }

    /// Words of each row, as often as they are there; 0 for weights.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// The rows that have a word, ascending, and how often.
    pub fn places(&self, word: &str) -> impl Iterator<Item = (u32, u32)> + use<'_> {
        let at = self.starts.binary_search_by(|start| {
            let (found, _) = self.entry(*start).unwrap_or_default();
            found.cmp(word.as_bytes())
        });
        let places = at.ok().and_then(|at| Some(self.entry(*self.starts.get(at)?)?.1));
        EachPlace::of(places.unwrap_or_default()).flatten()
    }

    /// The bytes of a word, and of its places.
    fn entry(&self, start: usize) -> Option<(&[u8], &[u8])> {
        let mut rest = self.bytes.get(start..)?;
        Some((part(&mut rest)?, part(&mut rest)?))
    }
}

/// Where words begin, and how many each row has.
fn checked(
    bytes: &[u8],
    kind: Kind,
    rows: u32,
) -> core::result::Result<(Vec<usize>, Vec<u32>), String> {
    let cut = || "they end within a word".to_owned();
    let Some((_, mut rest)) = bytes.split_first().filter(|(first, _)| **first == kind as u8) else {
        return Err(format!("their first byte is {:?}, not {}", bytes.first(), kind as u8));
    };
    let told = number(&mut rest).ok_or_else(cut)?;
    if told != u64::from(rows) {
        return Err(format!("they are of {told} rows"));
    }
    let (mut starts, mut lengths) = (Vec::new(), vec![0u32; rows as usize]);
    let mut before: Option<&[u8]> = None;
    while !rest.is_empty() {
        starts.push(bytes.len() - rest.len());
        let word = part(&mut rest).ok_or_else(cut)?;
        if before.is_some_and(|before| before >= word) || core::str::from_utf8(word).is_err() {
            return Err("a word is not text, or out of order".to_owned());
        }
        before = Some(word);
        let places = part(&mut rest).ok_or_else(cut)?;
        if places.is_empty() {
            return Err("a word has no row".to_owned());
        }
        for place in EachPlace::of(places) {
            let (row, times) = place.ok_or("a row is none")?;
            let length = lengths.get_mut(row as usize).ok_or("a row is beyond the last")?;
            let weight = f32::from_bits(times);
            match kind {
                Kind::Words => {
                    *length = length.checked_add(times).ok_or("a row has too many words")?;
                }
                Kind::Weights if weight.is_finite() && weight > 0.0 => {}
                Kind::Weights => return Err(format!("a weight is {weight}")),
            }
        }
    }
    Ok((starts, lengths))
}

/// The places of a word; None, and then no more, for bytes that are no place.
struct EachPlace<'a> {
    rest: &'a [u8],
    next: u64,
}

impl<'a> EachPlace<'a> {
    fn of(rest: &'a [u8]) -> Self {
        EachPlace { rest, next: 0 }
    }

    fn place(&mut self) -> Option<(u32, u32)> {
        let (step, times) = (number(&mut self.rest)?, number(&mut self.rest)?);
        let row = u32::try_from(self.next.checked_add(step)?).ok()?;
        self.next = u64::from(row) + 1;
        Some((row, u32::try_from(times).ok().filter(|times| *times > 0)?))
    }
}

impl Iterator for EachPlace<'_> {
    type Item = Option<(u32, u32)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let place = self.place();
        if place.is_none() {
            self.rest = &[];
        }
        Some(place)
    }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A number at the start of `rest`, which it leaves behind.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut found = 0u64;
    for shift in (0..63).step_by(7) {
        let (&byte, left) = rest.split_first()?;
        *rest = left;
        found |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return (byte != 0 || shift == 0).then_some(found);
        }
    }
    None
}

/// Bytes after their length at the start of `rest`, which it leaves behind.
fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (found, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(document: &str) -> Vec<u8> {
        serde_json::json!({ "document": document }).to_string().into_bytes()
    }

    fn made(documents: &[String]) -> Vec<u8> {
        let mut builder = TermsBuilder::new(Kind::Words, documents.len() as u32);
        for (row, document) in (0..).zip(documents) {
            builder.set(row, &record(document)).unwrap();
        }
        builder.to_bytes()
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_the_documents_have(documents in proptest::collection::vec("[a-e ]{0,12}", 0..12)) {
            let terms = Terms::read(&made(&documents), Kind::Words, documents.len() as u32).unwrap();
            let counts = |text: &str, word: &str| text.split_whitespace().filter(|one| *one == word).count() as u32;
            let all: Vec<&str> = documents.iter().flat_map(|text| text.split_whitespace()).collect();
            for word in all.iter().copied().chain(["zebra"]) {
                let expected: Vec<(u32, u32)> = (0..).zip(&documents).map(|(row, text)| (row, counts(text, word)))
                    .filter(|(_, times)| *times > 0).collect();
                prop_assert_eq!(terms.places(word).collect::<Vec<_>>(), expected);
            }
            let lengths: Vec<u32> = documents.iter().map(|text| text.split_whitespace().count() as u32).collect();
            prop_assert_eq!(terms.lengths(), lengths);
        }

        #[test]
        fn other_bytes_are_refused_or_written_the_same_way(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..40),
            kind in prop_oneof![Just(Kind::Words), Just(Kind::Weights)],
        ) {
            if let Some(first) = bytes.first_mut() { *first = kind as u8; }
            if let Some(rows) = bytes.get_mut(1) { *rows = 5; }
            if let Ok(terms) = Terms::read(&bytes, kind, 5) {
                let mut builder = TermsBuilder::new(kind, 5);
                for start in &terms.starts {
                    let word = core::str::from_utf8(terms.entry(*start).unwrap().0).unwrap();
                    builder.places.insert(word.into(), terms.places(word).collect());
                }
                prop_assert_eq!(builder.to_bytes(), bytes);
            }
        }

        #[test]
        fn one_flipped_bit_is_refused_or_means_something_else(
            documents in proptest::collection::vec("[a-e ]{1,12}", 1..6), at in any::<proptest::sample::Index>(), bit in 0..8,
        ) {
            let bytes = made(&documents);
            let mut flipped = bytes.clone();
            flipped[at.index(bytes.len())] ^= 1u8 << bit;
            let rows = documents.len() as u32;
            let (before, now) = (Terms::read(&bytes, Kind::Words, rows).unwrap(), Terms::read(&flipped, Kind::Words, rows));
            if let Ok(now) = now {
                let all = |terms: &Terms| terms.starts.iter().map(|start| {
                    let word = core::str::from_utf8(terms.entry(*start).unwrap().0).unwrap().to_owned();
                    let places: Vec<_> = terms.places(&word).collect();
                    (word, places)
                }).collect::<Vec<_>>();
                prop_assert_ne!(all(&before), all(&now));
            }
        }
    }
}
