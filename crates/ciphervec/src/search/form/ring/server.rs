//! Expands encrypted queries to trees and scores segments with them, for the server, which holds evaluation keys only.

use super::clusters::Clusters;
use super::packing::answer_words;
use crate::error::{Error, Result};
use crate::index::form::Rows;
use crate::index::spec::IndexSpec;
use crate::search::entry::{Chosen, SegmentEntry, SegmentReader, rows_of};
use crate::search::form::contract::{
    Evaluation, HeldKeys, Request, ServerHalf, ServerTimings, SessionKeys, Sink, TreeLender,
    expect_key, next_piece,
};
use crate::search::message::{HALF_HEAD, KeysName, QueryHead, ResponseWriter, response_len};
use crate::search::segment::{HEADROOM, Segment, SegmentHead};
use crate::search::stopwatch::Stopwatch;
use ciphervec_arith::AlignedBytes;
use ciphervec_he::lattice::ring::{
    self, AnswerWords, Ciphertext, EvaluationKeys, Expanded, Layout, MaskSums, Masks, Ring,
    SESSION_EPOCHS, is_session,
};
use ciphervec_he::wire::{KeyId, Kind, Reader};
use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Queries expanded at once: their trees are what a query costs in memory.
const IN_FLIGHT: usize = 8;
/// Bytes of trees at once, unless one query takes more.
const TREES: usize = 256 << 20;

/// Bytes of one query's trees.
pub(super) fn trees_len(layouts: &[Layout]) -> usize {
    layouts.iter().map(Expanded::bytes).sum()
}

pub(super) fn in_flight(trees: usize) -> usize {
    (TREES / trees.max(1)).clamp(1, IN_FLIGHT)
}

/// Bytes of the trees of as many queries as are expanded at once, and of the one being expanded.
pub fn working_len(spec: &IndexSpec, levels: &[u8], queries: usize) -> Result<usize> {
    let layouts = levels.iter().map(|&level| Layout::new(spec.dimension(), level));
    let trees = trees_len(&layouts.collect::<core::result::Result<Vec<_>, _>>()?);
    Ok(trees * (in_flight(trees).min(queries) + 1))
}

#[derive(Clone)]
pub struct RingServer {
    pub(super) spec: IndexSpec,
    rows: Rows,
    pub(super) ring: Arc<Ring>,
    masks: Option<Arc<Masks>>,
    keys: BTreeMap<u32, Arc<HeldKeys>>,
}

impl RingServer {
    pub fn new(spec: IndexSpec, rows: Rows) -> Result<Self> {
        let ring = Arc::new(Ring::new()?);
        Ok(RingServer { spec, rows, ring, masks: None, keys: BTreeMap::new() })
    }

    fn read_keys(&self, bytes: &[u8]) -> Result<HeldKeys> {
        let keys = EvaluationKeys::from_bytes(&self.ring, bytes, self.spec.dimension())?;
        self.spec.expect_id(Kind::EvaluationKeys.as_str(), keys.binding().index)?;
        let mut name = KeysName::default();
        name.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        Ok(HeldKeys { keys, name })
    }

    fn read_session(&self, bytes: &[u8]) -> Result<SessionKeys> {
        let held = self.read_keys(bytes)?;
        let epoch = held.keys.epoch();
        if !is_session(epoch) {
            return Err(Error::Range {
                what: "the epoch of a session's evaluation keys",
                expected: format!("{SESSION_EPOCHS} or more"),
                actual: epoch.to_string(),
            });
        }
        if !self.is_of_owner(&held.keys) {
            let expected = self.keys.values().next().map(|held| held.keys.key_id());
            expect_key(
                Kind::EvaluationKeys.as_str(),
                expected.unwrap_or_default(),
                held.keys.key_id(),
            )?;
            let what = Kind::EvaluationKeys.as_str();
            let detail = "the public masks of this index were expected, those of another came";
            return Err(Reader::new(what, bytes).error(detail).into());
        }
        Ok(SessionKeys(Arc::new(held)))
    }

    /// Whether both are of one owner, under the same public masks.
    fn is_of_owner(&self, keys: &EvaluationKeys) -> bool {
        let of = |keys: &EvaluationKeys| (keys.key_id(), *keys.binding());
        self.keys.values().any(|held| of(&held.keys) == of(keys))
    }
}

impl ServerHalf for RingServer {
    fn with_keys(&self, bytes: &[u8], _held: Option<KeyId>) -> Result<(Arc<dyn ServerHalf>, u32)> {
        let held = self.read_keys(bytes)?;
        let (epoch, seed) = (held.keys.epoch(), held.keys.binding().mask_seed);
        let mut next = self.clone();
        if next.masks.as_ref().is_none_or(|masks| *masks.seed() != seed) {
            next.masks = Some(Arc::new(Masks::new(seed, self.spec.dimension())));
        }
        next.keys.insert(epoch, Arc::new(held));
        Ok((Arc::new(next), epoch))
    }

    fn without_epoch(&self, epoch: u32) -> Option<Arc<dyn ServerHalf>> {
        let mut next = self.clone();
        next.keys.remove(&epoch)?;
        Some(Arc::new(next))
    }

    fn session_keys(&self, bytes: &[u8]) -> Option<Result<SessionKeys>> {
        Some(self.read_session(bytes))
    }

    fn with_session(&self, keys: &SessionKeys) -> Option<Arc<dyn ServerHalf>> {
        if !self.is_of_owner(&keys.0.keys) {
            return None;
        }
        let mut next = self.clone();
        next.keys.insert(keys.epoch(), Arc::clone(&keys.0));
        Some(Arc::new(next))
    }

    fn read_rows(&self, head: SegmentHead, bytes: AlignedBytes) -> Result<Segment> {
        self.ring.check_packed(&bytes[HEADROOM..])?;
        Ok(Segment::of_words(head, None, bytes))
    }

    /// Each request by itself: a pass is bound by its multiplications, and sharing it wins little.
    fn score(
        &self,
        requests: Vec<Request<'_>>,
        rows: &dyn SegmentReader,
    ) -> Result<Vec<Result<Evaluation>>> {
        let answer = |request| {
            let (work, body) = self.begin(request)?;
            self.answer(&work, body, rows)
        };
        Ok(requests.into_iter().map(answer).collect())
    }

    fn score_into(
        &self,
        request: Request<'_>,
        rows: &dyn SegmentReader,
        sink: &mut Sink<'_>,
    ) -> Result<ServerTimings> {
        let (work, body) = self.begin(request)?;
        let at_once = work.head.half.is_none() && work.clusters.is_none();
        if at_once && work.count() <= in_flight(trees_len(&work.layouts)) {
            return self.answer_into(&work, body, rows, sink);
        }
        let mut body = Some(body);
        sink.whole(|| body.take().map(|body| self.answer(&work, body, rows)))
    }
}

/// One segment's part of an answer.
pub(super) struct Part<'a> {
    pub entry: &'a SegmentEntry,
    matching: Option<Vec<bool>>,
    pub layout: usize,
    /// Bytes of one query's answer, or of half of it.
    pub length: usize,
}

/// A request that is to be answered: the keys of its epoch, the levels and the words of the answer, its parts.
pub(super) struct Work<'a> {
    head: QueryHead,
    key: KeyId,
    /// Of all masks; where half of an answer is asked for, each query brings its own.
    seed: [u8; 32],
    pub masks: &'a Masks,
    pub keys: &'a HeldKeys,
    pub layouts: Vec<Layout>,
    /// Those of each level's answers.
    pub words: Vec<AnswerWords>,
    /// How many levels have mask sums.
    levels: usize,
    /// Those that are to be folded.
    pub clusters: Option<Clusters<'a>>,
    pub parts: Vec<Part<'a>>,
    lender: Option<&'a dyn TreeLender>,
}

/// Where answers are written: of queries from the first on, of these parts, from where each starts.
struct Place<'a> {
    first: usize,
    parts: &'a [Part<'a>],
    starts: &'a [usize],
}

impl Work<'_> {
    pub fn count(&self) -> usize {
        self.head.count as usize
    }

    /// Bytes of the answer after its header.
    fn payload_len(&self) -> usize {
        let count = self.count();
        let sums = self.words.iter().take(self.levels).map(|words| 1 + count * words.sums_len());
        let parts = self.parts.iter();
        let parts = parts.map(|part| (part.matching.as_deref(), count * part.length));
        let parts = parts.chain(self.folded_lens().map(|length| (None, length)));
        response_len(sums.sum(), parts) + self.head.half.map_or(0, |_| HALF_HEAD)
    }

    /// Leaves room for the mask sums: where those of each level start.
    fn reserve_sums(&self, writer: &mut ResponseWriter) -> Vec<usize> {
        let levels = self.layouts.iter().zip(&self.words).take(self.levels);
        levels
            .map(|(layout, words)| {
                writer.body().push(layout.level());
                writer.reserve(self.count() * words.sums_len()).start
            })
            .collect()
    }

    /// Leaves room for the answers of these parts, behind the head of each: where they start.
    fn reserve_parts(&self, parts: &[Part<'_>], writer: &mut ResponseWriter) -> Vec<usize> {
        parts
            .iter()
            .map(|part| {
                let head = &part.entry.head;
                writer.segment(head.id, head.rows, head.level, part.matching.as_deref());
                writer.reserve(self.count() * part.length).start
            })
            .collect()
    }
}

impl RingServer {
    /// What a request is about, and the keys to answer it; what follows are its queries.
    fn begin<'a>(&'a self, request: Request<'a>) -> Result<(Work<'a>, Reader<'a>)> {
        let Request { head, key, mut body, chosen, lender } = request;
        let missing = Error::NoEvaluationKeys { epoch: head.epoch };
        let (Some(masks), Some(keys)) = (&self.masks, self.keys.get(&head.epoch)) else {
            return Err(missing);
        };
        expect_key(Kind::Query.as_str(), keys.keys.key_id(), key)?;
        let layouts = self.layouts(head.top_level, &chosen)?;
        let words = layouts.iter().map(|layout| answer_words(head.words.as_ref(), layout.level()));
        let words = words.collect::<Result<Vec<_>>>()?;
        // Owners since 0.2 compute the mask sums themselves.
        let with_sums = self.rows == Rows::Encrypted && head.words.is_none();
        let levels = if with_sums { layouts.len() } else { 0 };
        let part = |(entry, matching): Chosen<'a>| {
            // Every level of a chosen segment is among the layouts.
            let layout = layouts.iter().position(|one| one.level() == entry.head.level)?;
            let (words, of, rows) = (&words[layout], &layouts[layout], entry.head.rows as usize);
            let length = match head.half {
                Some(half) => words.half_len(half, of, rows),
                None => words.answer_len(of, rows),
            };
            Some(Part { entry, matching, layout, length })
        };
        let (clusters, chosen) = Clusters::of(&head, &body, chosen)?;
        let parts = chosen.into_iter().filter_map(part).collect();
        let seed = if head.half.is_none() { body.array()? } else { [0; 32] };
        let work =
            Work { head, key, seed, masks, keys, layouts, words, levels, clusters, parts, lender };
        Ok((work, body))
    }

    /// The whole response is laid out first, then written in place as queries are answered.
    fn answer(
        &self,
        work: &Work<'_>,
        mut body: Reader<'_>,
        rows: &dyn SegmentReader,
    ) -> Result<Evaluation> {
        let mut timings = ServerTimings::default();
        let (count, length) = (work.count(), work.payload_len());
        let mut writer =
            ResponseWriter::new(&self.spec, &work.head, &work.keys.name, work.levels as u8, length);
        let sums_at = work.reserve_sums(&mut writer);
        writer.segments((work.folded_lens().count() + work.parts.len()) as u32);
        let folded_at = work.reserve_folded(&mut writer);
        let parts_at = work.reserve_parts(&work.parts, &mut writer);
        if let Some(half) = work.head.half {
            timings = self.write_half(work, half, &mut body, rows, &parts_at, &mut writer)?;
        }
        let whole = if work.head.half.is_none() { count } else { 0 };
        let at_once = in_flight(trees_len(&work.layouts));
        for first in (0..whole).step_by(at_once) {
            let queries = first..(first + at_once).min(count);
            let start = Stopwatch::start();
            let trees = self.expand(work, &mut body, queries)?;
            self.write_sums(work, &trees, first, &sums_at, &mut writer);
            timings.expand += start.seconds();
            let place = Place { first, parts: &work.parts, starts: &parts_at };
            self.write_scores(work, &trees, &place, rows, &mut writer, &mut timings)?;
            if let [tree] = &trees[..] {
                let asked = (&tree[..], &mut body);
                self.write_folded(work, asked, rows, &folded_at, &mut writer, &mut timings)?;
            }
        }
        body.finish()?;
        let start = Stopwatch::start();
        let bytes = writer.finish(&self.spec, work.key);
        timings.respond += start.seconds();
        Ok(Evaluation { bytes, timings })
    }

    /// As [`Self::answer`], some segments after the others: queries are expanded once, so no more of them than may be at once.
    fn answer_into(
        &self,
        work: &Work<'_>,
        mut body: Reader<'_>,
        rows: &dyn SegmentReader,
        sink: &mut Sink<'_>,
    ) -> Result<ServerTimings> {
        let mut timings = ServerTimings::default();
        let (spec, count, length) = (&self.spec, work.count(), work.payload_len());
        let levels = work.levels as u8;
        let mut writer =
            ResponseWriter::in_pieces(spec, &work.head, work.key, &work.keys.name, levels, length);
        let mut trees = Vec::new();
        sink.work(|| {
            let start = Stopwatch::start();
            trees = self.expand(work, &mut body, 0..count)?;
            let sums_at = work.reserve_sums(&mut writer);
            self.write_sums(work, &trees, 0, &sums_at, &mut writer);
            writer.segments(work.parts.len() as u32);
            timings.expand = start.seconds();
            Ok(())
        })?;
        body.finish()?;
        let mut parts = work.parts.as_slice();
        while (sink.write)(&writer.piece()) && !parts.is_empty() {
            let piece = next_piece(parts.iter().map(|part| count * part.length));
            let (now, later) = parts.split_at(piece);
            sink.work(|| {
                let starts = work.reserve_parts(now, &mut writer);
                let place = Place { first: 0, parts: now, starts: &starts };
                self.write_scores(work, &trees, &place, rows, &mut writer, &mut timings)
            })?;
            parts = later;
        }
        Ok(timings)
    }

    /// Reads the next queries and expands each to a tree for every level.
    fn expand(
        &self,
        work: &Work<'_>,
        body: &mut Reader<'_>,
        queries: Range<usize>,
    ) -> Result<Vec<Vec<Expanded>>> {
        let pieces = Layout::new(self.spec.dimension(), 0)?.chunks();
        let expand = |query| {
            let first = query * pieces;
            let ciphertexts = (first..first + pieces)
                .map(|piece| Ciphertext::read(&self.ring, body, &work.seed, piece as u64))
                .collect::<core::result::Result<Vec<_>, _>>()?;
            match work.lender {
                Some(lender) => lender.expand(query, &ciphertexts, &work.layouts),
                None => Ok(ring::expand(&self.ring, &work.keys.keys, &ciphertexts, &work.layouts)?),
            }
        };
        queries.map(expand).collect()
    }

    fn write_sums(
        &self,
        work: &Work<'_>,
        group: &[Vec<Expanded>],
        first: usize,
        sums_at: &[usize],
        writer: &mut ResponseWriter,
    ) {
        for (index, &at) in sums_at.iter().enumerate() {
            let trees = of_level(group, index);
            let words = work.words[index];
            let sums = MaskSums::compute(&self.ring, work.masks, &work.layouts[index], &trees);
            for (query, sums) in sums.iter().enumerate() {
                let at = at + (first + query) * words.sums_len();
                sums.write(writer.span(at..at + words.sums_len()));
            }
        }
    }

    fn write_scores(
        &self,
        work: &Work<'_>,
        group: &[Vec<Expanded>],
        place: &Place<'_>,
        rows: &dyn SegmentReader,
        writer: &mut ResponseWriter,
        timings: &mut ServerTimings,
    ) -> Result<()> {
        let Place { first, parts, starts } = *place;
        let segments = rows_of(rows.parser(), parts.iter().map(|part| part.entry));
        for ((part, segment), part_at) in parts.iter().zip(segments).zip(starts) {
            let (trees, segment) = (of_level(group, part.layout), segment?);
            let (rows, layout) = (part.entry.head.rows as usize, &work.layouts[part.layout]);
            let words = work.words[part.layout];
            for blocks in layout.ranges(rows, trees.len()) {
                let start = Stopwatch::start();
                let products =
                    ring::scan(&self.ring, layout, segment.data(), rows, blocks.clone(), &trees);
                timings.scan += start.seconds();
                let start = Stopwatch::start();
                for (query, sums) in products.iter().enumerate() {
                    let at = part_at + (first + query) * part.length;
                    let out = writer.span(at..at + part.length);
                    ring::write_answer(&self.ring, layout, words, blocks.clone(), sums, out);
                }
                timings.respond += start.seconds();
            }
        }
        Ok(())
    }

    /// The distinct levels of the chosen segments; a query must reach the deepest.
    fn layouts(&self, top_level: u8, chosen: &[Chosen<'_>]) -> Result<Vec<Layout>> {
        let mut levels: Vec<u8> = chosen.iter().map(|(entry, _)| entry.head.level).collect();
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

/// The trees of one level, one a query.
pub(super) fn of_level(group: &[Vec<Expanded>], level: usize) -> Vec<&Expanded> {
    group.iter().map(|trees| &trees[level]).collect()
}
