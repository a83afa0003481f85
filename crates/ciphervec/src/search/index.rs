//! The server's half: segments and query bytes enter, answer bytes leave. It cannot name a secret key.

use super::additive::{Evaluator, read_public_key};
use super::segment::{Segment, SegmentHead};
use crate::error::{Error, Result};
use crate::filter::{FilterTag, FilterTags};
use crate::message::{QueryHead, ResponseWriter, answer_len, read_floats, read_integers};
use crate::similarity::Probes;
use crate::{IndexSpec, Mode};
use ciphervec_arith::AlignedBytes;
use ciphervec_he::sealed::SegmentId;
use ciphervec_he::sealed::compact;
use ciphervec_he::sealed::ring::{
    self, Ciphertext, EvaluationKeys, Expanded, Layout, MaskSums, Masks, Ring,
};
use ciphervec_he::wire::{KeyId, Kind, Reader};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
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

/// One index as the server holds it: segments, filter tags and evaluation keys. A clone shares all of them, so that the next
/// state is made beside the one that queries are still being answered from.
#[derive(Clone)]
pub struct ServerIndex {
    spec: IndexSpec,
    ring: Option<Arc<Ring>>,
    masks: Option<Arc<Masks>>,
    keys: BTreeMap<u32, Arc<EvaluationKeys>>,
    public: Option<Arc<dyn Evaluator>>,
    segments: Vec<Arc<Held>>,
    ids: HashSet<[u8; 16]>,
}

/// Rows that are not kept in memory, or only while there is room.
pub trait SegmentSource: Send + Sync {
    /// The segment, checked; `index` parses what was read.
    ///
    /// # Errors
    /// Bytes that cannot be read, or are not what they were.
    fn segment(&self, index: &ServerIndex) -> Result<Arc<Segment>>;

    /// Whether the rows are in memory; if so, they will be used soon.
    fn touch(&self) -> bool;

    /// Whether the rows are in memory now.
    fn is_resident(&self) -> bool;
}

/// A segment as the index knows it, wherever its rows are.
pub(super) struct Held {
    pub head: SegmentHead,
    len: usize,
    tags: FilterTags,
    rows: Rows,
}

enum Rows {
    Resident(Arc<Segment>),
    Stored(Arc<dyn SegmentSource>),
}

impl Held {
    /// The rows, in memory for as long as what comes back is held.
    pub fn segment(&self, index: &ServerIndex) -> Result<Arc<Segment>> {
        match &self.rows {
            Rows::Resident(segment) => Ok(Arc::clone(segment)),
            Rows::Stored(source) => source.segment(index),
        }
    }
}

/// A segment that a query is about, with its matching rows if the query is filtered.
pub(super) type Chosen<'a> = (&'a Held, Option<Vec<bool>>);

impl ServerIndex {
    /// An empty index.
    ///
    /// # Errors
    /// If the parameters were refused.
    pub fn new(spec: IndexSpec) -> Result<Self> {
        let ring = if spec.mode().encrypts_queries() { Some(Arc::new(Ring::new()?)) } else { None };
        Ok(ServerIndex {
            spec,
            ring,
            masks: None,
            keys: BTreeMap::new(),
            public: None,
            segments: Vec::new(),
            ids: HashSet::new(),
        })
    }

    /// The description.
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// Installs evaluation keys; those of other epochs stay until [`Self::forget_epoch`]. Under an additively homomorphic
    /// scheme they are the public key, which comes before any segment and has no epoch.
    ///
    /// # Errors
    /// Damaged bytes, another index, another key than that of the segments held, or a mode that needs no keys.
    pub fn set_evaluation_keys(&mut self, bytes: &[u8]) -> Result<u32> {
        if self.spec.scheme().is_additive() {
            let public = read_public_key(&self.spec, bytes)?;
            if let Some(held) = self.segments.first() {
                expect_key(Kind::PublicKey.as_str(), held.head.key, public.key_id())?;
            }
            self.public = Some(public.into());
            return Ok(0);
        }
        let Some(ring) = &self.ring else {
            return Err(Error::choice(
                "mode",
                "sealed or sealed-query to hold evaluation keys",
                self.spec.mode().as_str(),
            ));
        };
        let keys = EvaluationKeys::from_bytes(ring, bytes, self.spec.dimension())?;
        self.spec.expect_id(Kind::EvaluationKeys.as_str(), keys.binding().index)?;
        let mask_seed = keys.binding().mask_seed;
        if self.masks.as_ref().is_none_or(|masks| *masks.seed() != mask_seed) {
            self.masks = Some(Arc::new(Masks::new(mask_seed, self.spec.dimension())));
        }
        let epoch = keys.epoch();
        self.keys.insert(epoch, Arc::new(keys));
        Ok(epoch)
    }

    /// Drops the keys of an epoch that is over.
    pub fn forget_epoch(&mut self, epoch: u32) -> bool {
        self.keys.remove(&epoch).is_some()
    }

    /// Adds a segment without filter tags.
    ///
    /// # Errors
    /// As [`Self::add_tagged`].
    pub fn add(&mut self, bytes: AlignedBytes) -> Result<SegmentId> {
        self.add_tagged(bytes, FilterTags::new())
    }

    /// Adds a segment and the filter tags of its rows (none, or one list a row).
    ///
    /// # Errors
    /// Damaged bytes, another index, a segment that is there already, tags for another number of rows.
    pub fn add_tagged(&mut self, bytes: AlignedBytes, tags: FilterTags) -> Result<SegmentId> {
        let segment = self.parse(bytes)?;
        let (head, len) = (*segment.head(), segment.byte_len());
        self.hold(Held { head, len, tags, rows: Rows::Resident(Arc::new(segment)) })
    }

    /// Adds a segment whose rows come from `source` whenever they are needed; `len` is the length of its framed bytes.
    ///
    /// # Errors
    /// A segment that is there already, tags for another number of rows.
    pub fn add_stored(
        &mut self,
        head: SegmentHead,
        len: usize,
        tags: FilterTags,
        source: Arc<dyn SegmentSource>,
    ) -> Result<SegmentId> {
        self.hold(Held { head, len, tags, rows: Rows::Stored(source) })
    }

    fn hold(&mut self, held: Held) -> Result<SegmentId> {
        let head = held.head;
        if self.ids.contains(&head.id.0) {
            return Err(Error::DuplicateSegment(head.id.to_string()));
        }
        if held.tags.rows() != 0 && held.tags.rows() != head.rows {
            return Err(Error::Range {
                what: "rows with filter tags",
                expected: format!("0 or {}", head.rows),
                actual: held.tags.rows().to_string(),
            });
        }
        self.ids.insert(head.id.0);
        self.segments.push(Arc::new(held));
        Ok(head.id)
    }

    /// A segment of this index, without adding it, from bytes that the store has checked block by block: their checksum is
    /// not computed a second time.
    ///
    /// # Errors
    /// Another index, lengths or numbers that do not fit.
    pub fn parse_checked(&self, bytes: AlignedBytes) -> Result<Segment> {
        if self.spec.scheme().is_additive() {
            Segment::of_vectors(&self.spec, self.public()?, &bytes)
        } else {
            Segment::from_checked(&self.spec, self.ring.as_deref(), bytes)
        }
    }

    /// A segment of this index, without adding it.
    ///
    /// # Errors
    /// Damaged bytes, another index.
    pub fn parse(&self, bytes: AlignedBytes) -> Result<Segment> {
        if self.spec.scheme().is_additive() {
            Segment::of_vectors(&self.spec, self.public()?, &bytes)
        } else {
            Segment::from_bytes(&self.spec, self.ring.as_deref(), bytes)
        }
    }

    /// Drops a segment; whether it was there.
    pub fn remove(&mut self, id: SegmentId) -> bool {
        self.ids.remove(&id.0);
        let position = self.position(id);
        position.map(|index| self.segments.remove(index)).is_some()
    }

    fn public(&self) -> Result<&dyn Evaluator> {
        self.public.as_deref().ok_or(Error::NoPublicKey)
    }

    fn position(&self, id: SegmentId) -> Option<usize> {
        self.segments.iter().position(|held| held.head.id == id)
    }

    /// The segments that are in memory whatever happens, in the order they were added.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter_map(|held| match &held.rows {
            Rows::Resident(segment) => Some(segment.as_ref()),
            Rows::Stored(_) => None,
        })
    }

    /// What the segments say of themselves, in the order they were added.
    pub fn heads(&self) -> impl Iterator<Item = &SegmentHead> {
        self.segments.iter().map(|held| &held.head)
    }

    pub(super) fn held(&self) -> impl Iterator<Item = &Held> {
        self.segments.iter().map(AsRef::as_ref)
    }

    /// Vectors held.
    pub fn rows(&self) -> usize {
        self.heads().map(|head| head.rows as usize).sum()
    }

    /// Bytes of the segments held, in memory or not.
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(|held| held.len).sum()
    }

    /// Bytes of the segments that are in memory now.
    pub fn resident(&self) -> u64 {
        let resident = self.segments.iter().filter(|held| match &held.rows {
            Rows::Resident(_) => true,
            Rows::Stored(source) => source.is_resident(),
        });
        resident.map(|held| held.len as u64).sum()
    }

    /// Asks for the rows of every segment, on all threads of the current pool, so that a pass over them does not wait for one
    /// after the other. What cannot be read is left to whoever needs it.
    pub fn warm(&self) {
        let missing = self.segments.iter().filter_map(|held| match &held.rows {
            Rows::Stored(source) if !source.touch() => Some(source),
            _ => None,
        });
        // All that is there has been touched before the first is read: room is not made among them.
        let missing: Vec<_> = missing.collect();
        missing.into_par_iter().for_each(|source| {
            let _ = source.segment(self);
        });
    }

    /// Bytes of the answer to a query, nearly; zero under an additively homomorphic scheme, whose answers are short.
    ///
    /// # Errors
    /// As [`Self::evaluate`] for a query that does not parse.
    pub fn answer_len(&self, query: &[u8]) -> Result<u64> {
        let (head, _, _) = QueryHead::open(&self.spec, query)?;
        if self.spec.scheme().is_additive() {
            return Ok(0);
        }
        self.capacity(&head, &self.choose(&head.tags)).map(|bytes| bytes as u64)
    }

    pub(super) fn capacity(&self, head: &QueryHead, chosen: &[Chosen<'_>]) -> Result<usize> {
        let mut capacity = 32;
        for (held, matching) in chosen {
            let (rows, level) = (held.head.rows as usize, held.head.level);
            capacity += 22 + matching.as_ref().map_or(0, |_| rows.div_ceil(8));
            capacity += head.count as usize * answer_len(&self.spec, rows, level)?;
        }
        Ok(capacity)
    }

    /// Answers a batch of queries over every segment.
    ///
    /// # Errors
    /// Damaged or foreign bytes, missing evaluation keys, a query that serves a shallower tree than a segment needs.
    pub fn evaluate(&self, query: &[u8]) -> Result<Evaluation> {
        let mut timings = ServerTimings::default();
        let (head, key, reader) = QueryHead::open(&self.spec, query)?;
        let chosen = self.choose(&head.tags);
        if self.spec.scheme().is_additive() {
            let bytes = self.evaluate_additive(&head, key, reader, &chosen, &mut timings)?;
            return Ok(Evaluation { bytes, timings });
        }
        let capacity = self.capacity(&head, &chosen)?;
        let bytes = match self.spec.mode() {
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

    /// Segments with a row that carries every tag, each with its matching rows.
    pub(super) fn choose(&self, tags: &[FilterTag]) -> Vec<Chosen<'_>> {
        let every = self.segments.iter();
        every
            .filter_map(|held| {
                if tags.is_empty() {
                    return Some((&**held, None));
                }
                let matching = held.tags.matches(tags);
                matching.contains(&true).then_some((&**held, Some(matching)))
            })
            .collect()
    }

    fn evaluate_open(
        &self,
        head: &QueryHead,
        reader: Reader<'_>,
        chosen: &[Chosen<'_>],
        capacity: usize,
        timings: &mut ServerTimings,
    ) -> Result<Vec<u8>> {
        let queries = read_floats(&self.spec, head.count, reader)?;
        let start = Instant::now();
        let mut writer = ResponseWriter::new(&self.spec, head.count, 0, capacity);
        writer.segments(chosen.len() as u32);
        for (held, matching) in chosen {
            let segment = held.segment(self)?;
            writer.segment(held.head.id, held.head.rows, 0, matching.as_deref());
            for query in queries.chunks_exact(self.spec.dimension()) {
                for row in segment.data().chunks_exact(self.spec.dimension() * 4) {
                    let score = inner_product(row, query);
                    writer.body().extend_from_slice(&(score as f32).to_le_bytes());
                }
            }
        }
        timings.scan = start.elapsed().as_secs_f64();
        Ok(writer.finish(&self.spec, KeyId::default()))
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
        let mut writer = ResponseWriter::new(&self.spec, head.count, 0, 32);
        writer.segments(chosen.len() as u32);
        for (held, matching) in chosen {
            let segment = held.segment(self)?;
            let Some(vectors) = segment.vectors() else { return Err(Error::NoPublicKey) };
            let scores = vectors.score(&probes)?;
            writer.segment(held.head.id, held.head.rows, 0, matching.as_deref());
            writer.body().extend_from_slice(&(scores.len() as u64).to_le_bytes());
            writer.body().extend_from_slice(&scores);
        }
        timings.scan = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let bytes = writer.finish(&self.spec, public);
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
        let queries = read_integers(&self.spec, head.count, reader)?;
        let start = Instant::now();
        let mut writer = ResponseWriter::new(&self.spec, head.count, 0, capacity);
        writer.segments(chosen.len() as u32);
        for (held, matching) in chosen {
            let segment = held.segment(self)?;
            let head = &held.head;
            writer.segment(head.id, head.rows, 0, matching.as_deref());
            let (form, rows) = (self.spec.precision().form(), head.rows as usize);
            compact::scan(
                form,
                segment.data(),
                rows,
                self.spec.dimension(),
                &queries,
                writer.body(),
            );
        }
        timings.scan = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let bytes = writer.finish(&self.spec, KeyId::default());
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
        let sealed = self.spec.mode() == Mode::Sealed;
        let pieces = Layout::new(self.spec.dimension(), 0)?.chunks();
        let count = head.count as usize;
        // The whole response is laid out first, then written in place as queries are answered.
        let levels = if sealed { layouts.len() } else { 0 };
        let capacity = capacity + levels * (1 + count * MaskSums::BYTES);
        let mut writer = ResponseWriter::new(&self.spec, head.count, levels as u8, capacity);
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
            let length = answer_len(&self.spec, head.rows as usize, head.level)?;
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
            for &(held, layout, length, at) in &parts {
                let trees = of_level(layout);
                let segment = held.segment(self)?;
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
        let bytes = writer.finish(&self.spec, key);
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
        levels.into_iter().map(|level| Ok(Layout::new(self.spec.dimension(), level)?)).collect()
    }
}

fn expect_key(what: &'static str, expected: KeyId, actual: KeyId) -> Result<()> {
    if expected == actual {
        return Ok(());
    }
    Err(ciphervec_he::Error::WrongKey { what, expected, actual }.into())
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
