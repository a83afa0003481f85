//! A query enters, its answer over every segment leaves. Server only.

use super::held::Chosen;
use super::index::{ServerIndex, expect_key};
use crate::Mode;
use crate::error::{Error, Result};
use crate::message::{QueryHead, ResponseWriter, answer_len, read_floats, read_integers};
use crate::similarity::additive::Probes;
use ciphervec_he::lattice::ring::{self, Ciphertext, Expanded, Layout, MaskSums};
use ciphervec_he::wire::{KeyId, Kind, Reader};
use std::time::Instant;

/// Ring queries expanded at once: their trees are what a query costs in memory.
const IN_FLIGHT: usize = 8;

/// Where a server spent its time, in seconds.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct ServerTimings {
    /// Reading and expanding queries, mask sums included.
    pub expand: f64,
    /// The products.
    pub scan: f64,
    /// Modulus switching and writing the answer.
    pub respond: f64,
}

/// An answer with what it took.
pub struct Evaluation {
    /// What goes back to the owner.
    pub bytes: Vec<u8>,
    /// Where the time went.
    pub timings: ServerTimings,
}

impl ServerIndex {
    /// Bytes of the answer to a query, nearly; zero under an additively homomorphic scheme, whose answers are short.
    ///
    /// # Errors
    /// As [`Self::evaluate`] for a query that does not parse.
    pub fn answer_len(&self, query: &[u8]) -> Result<u64> {
        let (head, _, _) = QueryHead::open(self.spec(), query)?;
        if self.spec().scheme().is_additive() {
            return Ok(0);
        }
        self.capacity(&head, &self.choose(&head.tags)).map(|bytes| bytes as u64)
    }

    pub(super) fn capacity(&self, head: &QueryHead, chosen: &[Chosen<'_>]) -> Result<usize> {
        let mut capacity = 32;
        for (held, matching) in chosen {
            let (rows, level) = (held.head.rows as usize, held.head.level);
            capacity += 22 + matching.as_ref().map_or(0, |_| rows.div_ceil(8));
            capacity += head.count as usize * answer_len(self.spec(), rows, level)?;
        }
        Ok(capacity)
    }

    /// Answers a batch of queries over every segment.
    ///
    /// # Errors
    /// Damaged or foreign bytes, missing evaluation keys, a query that serves a shallower tree than a segment needs.
    pub fn evaluate(&self, query: &[u8]) -> Result<Evaluation> {
        let mut timings = ServerTimings::default();
        let (head, key, reader) = QueryHead::open(self.spec(), query)?;
        let chosen = self.choose(&head.tags);
        if self.spec().scheme().is_additive() {
            let bytes = self.evaluate_additive(&head, key, reader, &chosen, &mut timings)?;
            return Ok(Evaluation { bytes, timings });
        }
        let capacity = self.capacity(&head, &chosen)?;
        let bytes = match self.spec().mode() {
            Mode::Open => self.evaluate_open(&head, reader, &chosen, capacity, &mut timings)?,
            Mode::SealedIndex => {
                self.evaluate_compact(&head, reader, &chosen, capacity, &mut timings)?
            }
            Mode::SealedQuery | Mode::Sealed => {
                self.evaluate_ring(&head, key, reader, &chosen, capacity, &mut timings)?
            }
        };
        Ok(Evaluation { bytes, timings })
    }

    fn evaluate_open(
        &self,
        head: &QueryHead,
        reader: Reader<'_>,
        chosen: &[Chosen<'_>],
        capacity: usize,
        timings: &mut ServerTimings,
    ) -> Result<Vec<u8>> {
        let queries = read_floats(self.spec(), head.count, reader)?;
        let start = Instant::now();
        let mut writer = ResponseWriter::new(self.spec(), head.count, 0, capacity);
        writer.segments(chosen.len() as u32);
        for ((held, matching), segment) in
            chosen.iter().zip(self.rows_of(chosen.iter().map(|one| one.0)))
        {
            let segment = segment?;
            writer.segment(held.head.id, held.head.rows, 0, matching.as_deref());
            for query in queries.chunks_exact(self.spec().dimension()) {
                for row in segment.data().chunks_exact(self.spec().dimension() * 4) {
                    let score = inner_product(row, query);
                    writer.body().extend_from_slice(&(score as f32).to_le_bytes());
                }
            }
        }
        timings.scan = start.elapsed().as_secs_f64();
        Ok(writer.finish(self.spec(), KeyId::default()))
    }

    fn evaluate_additive(
        &self,
        head: &QueryHead,
        key: KeyId,
        mut reader: Reader<'_>,
        chosen: &[Chosen<'_>],
        timings: &mut ServerTimings,
    ) -> Result<Vec<u8>> {
        let start = Instant::now();
        let public = self.public()?.key_id();
        expect_key(Kind::Query.as_str(), public, key)?;
        let probes = Probes::from_bytes(reader.take(reader.remaining())?)?;
        if probes.len() != head.count as usize {
            let detail = format!("{} probes expected, {} came", head.count, probes.len());
            return Err(reader.error(detail).into());
        }
        timings.expand = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mut writer = ResponseWriter::new(self.spec(), head.count, 0, 32);
        writer.segments(chosen.len() as u32);
        for ((held, matching), segment) in
            chosen.iter().zip(self.rows_of(chosen.iter().map(|one| one.0)))
        {
            let segment = segment?;
            let Some(vectors) = segment.vectors() else { return Err(Error::NoPublicKey) };
            let scores = vectors.score(&probes)?;
            writer.segment(held.head.id, held.head.rows, 0, matching.as_deref());
            writer.body().extend_from_slice(&(scores.len() as u64).to_le_bytes());
            writer.body().extend_from_slice(&scores);
        }
        timings.scan = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let bytes = writer.finish(self.spec(), public);
        timings.respond = start.elapsed().as_secs_f64();
        Ok(bytes)
    }

    fn evaluate_compact(
        &self,
        head: &QueryHead,
        reader: Reader<'_>,
        chosen: &[Chosen<'_>],
        capacity: usize,
        timings: &mut ServerTimings,
    ) -> Result<Vec<u8>> {
        let queries = read_integers(self.spec(), head.count, reader)?;
        let start = Instant::now();
        let mut writer = ResponseWriter::new(self.spec(), head.count, 0, capacity);
        writer.segments(chosen.len() as u32);
        for ((held, matching), segment) in
            chosen.iter().zip(self.rows_of(chosen.iter().map(|one| one.0)))
        {
            let segment = segment?;
            let head = &held.head;
            writer.segment(head.id, head.rows, 0, matching.as_deref());
            segment.scan(self.spec(), &queries, writer.body());
        }
        timings.scan = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let bytes = writer.finish(self.spec(), KeyId::default());
        timings.respond = start.elapsed().as_secs_f64();
        Ok(bytes)
    }

    fn evaluate_ring(
        &self,
        head: &QueryHead,
        key: KeyId,
        mut reader: Reader<'_>,
        chosen: &[Chosen<'_>],
        capacity: usize,
        timings: &mut ServerTimings,
    ) -> Result<Vec<u8>> {
        let missing = Error::NoEvaluationKeys { epoch: head.epoch };
        let (Some(ring), Some(masks)) = (&self.ring, &self.masks) else { return Err(missing) };
        let keys = self.keys.get(&head.epoch).ok_or(missing)?;
        expect_key(Kind::Query.as_str(), keys.key_id(), key)?;
        let layouts = self.layouts(head.top_level, chosen)?;
        let seed: [u8; 32] = reader.array()?;
        let sealed = self.spec().mode() == Mode::Sealed;
        let pieces = Layout::new(self.spec().dimension(), 0)?.chunks();
        let count = head.count as usize;
        // The whole response is laid out first, then written in place as queries are answered.
        let levels = if sealed { layouts.len() } else { 0 };
        let capacity = capacity + levels * (1 + count * MaskSums::BYTES);
        let mut writer = ResponseWriter::new(self.spec(), head.count, levels as u8, capacity);
        let mut sums_at = Vec::with_capacity(levels);
        for layout in layouts.iter().take(levels) {
            writer.body().push(layout.level());
            sums_at.push(writer.reserve(count * MaskSums::BYTES).start);
        }
        writer.segments(chosen.len() as u32);
        let mut parts = Vec::with_capacity(chosen.len());
        for (held, matching) in chosen {
            let head = &held.head;
            writer.segment(head.id, head.rows, head.level, matching.as_deref());
            let length = answer_len(self.spec(), head.rows as usize, head.level)?;
            let layout = layouts.iter().position(|layout| layout.level() == head.level);
            parts.extend(
                layout.map(|layout| (*held, layout, length, writer.reserve(count * length).start)),
            );
        }
        for first in (0..count).step_by(IN_FLIGHT) {
            let start = Instant::now();
            let group: Vec<Vec<Expanded>> = (first..(first + IN_FLIGHT).min(count))
                .map(|query| {
                    let ciphertexts: Vec<Ciphertext> = (0..pieces)
                        .map(|piece| {
                            Ciphertext::read(
                                ring,
                                &mut reader,
                                &seed,
                                (query * pieces + piece) as u64,
                            )
                        })
                        .collect::<core::result::Result<_, _>>()?;
                    Ok(ring::expand(ring, keys, &ciphertexts, &layouts)?)
                })
                .collect::<Result<_>>()?;
            let of_level =
                |index: usize| group.iter().map(|trees| &trees[index]).collect::<Vec<&Expanded>>();
            for (index, &at) in sums_at.iter().enumerate() {
                let sums = MaskSums::compute(ring, masks, &layouts[index], &of_level(index));
                for (query, sums) in sums.iter().enumerate() {
                    let at = at + (first + query) * MaskSums::BYTES;
                    sums.write(writer.span(at..at + MaskSums::BYTES));
                }
            }
            timings.expand += start.elapsed().as_secs_f64();
            let rows = self.rows_of(parts.iter().map(|part| part.0));
            for (&(held, layout, length, at), segment) in parts.iter().zip(rows) {
                let (trees, segment) = (of_level(layout), segment?);
                let (rows, layout) = (held.head.rows as usize, &layouts[layout]);
                for blocks in layout.ranges(rows) {
                    let start = Instant::now();
                    let products =
                        ring::scan(ring, layout, segment.data(), rows, blocks.clone(), &trees);
                    timings.scan += start.elapsed().as_secs_f64();
                    let start = Instant::now();
                    for (query, sums) in products.iter().enumerate() {
                        let at = at + (first + query) * length;
                        let out = writer.span(at..at + length);
                        ring::write_answer(ring, layout, blocks.clone(), sums, out);
                    }
                    timings.respond += start.elapsed().as_secs_f64();
                }
            }
        }
        reader.finish()?;
        let start = Instant::now();
        let bytes = writer.finish(self.spec(), key);
        timings.respond += start.elapsed().as_secs_f64();
        Ok(bytes)
    }

    /// The distinct levels of the chosen segments; a query must reach the deepest.
    fn layouts(&self, top_level: u8, chosen: &[Chosen<'_>]) -> Result<Vec<Layout>> {
        let mut levels: Vec<u8> = chosen.iter().map(|(held, _)| held.head.level).collect();
        levels.sort_unstable();
        levels.dedup();
        if let Some(&deepest) = levels.last()
            && deepest > top_level
        {
            return Err(Error::Range {
                what: "the top level of a query",
                expected: format!(
                    "at least {deepest}, the deepest segment; reload the sidecars and ask again"
                ),
                actual: top_level.to_string(),
            });
        }
        levels.into_iter().map(|level| Ok(Layout::new(self.spec().dimension(), level)?)).collect()
    }
}

/// The inner product of a row of little-endian float32 words with a query, in double precision. Eight partial sums, so that the
/// compiler can use vector registers.
pub(super) fn inner_product(row: &[u8], query: &[f32]) -> f64 {
    let product = |word: &[u8; 4], q: f32| f64::from(f32::from_le_bytes(*word)) * f64::from(q);
    let (words, _) = row.as_chunks::<4>();
    let ((words, last_words), (query, last)) = (words.as_chunks::<8>(), query.as_chunks::<8>());
    let mut sums = [0.0f64; 8];
    for (words, query) in words.iter().zip(query) {
        for lane in 0..8 {
            sums[lane] += product(&words[lane], query[lane]);
        }
    }
    let rest: f64 = last_words.iter().zip(last).map(|(word, &q)| product(word, q)).sum();
    sums.iter().sum::<f64>() + rest
}
