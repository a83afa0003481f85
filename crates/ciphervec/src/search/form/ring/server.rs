//! Ring scan: encrypted queries enter and are expanded to trees, encrypted scores leave. Server only.

use super::packing::answer_words;
use crate::error::{Error, Result};
use crate::index::form::Rows;
use crate::index::spec::IndexSpec;
use crate::search::entry::{Chosen, SegmentEntry, SegmentReader, rows_of};
use crate::search::form::contract::{Evaluation, Request, ServerHalf, ServerTimings, expect_key};
use crate::search::message::{QueryHead, ResponseWriter};
use crate::search::segment::{HEADROOM, Segment, SegmentHead};
use crate::search::stopwatch::Stopwatch;
use ciphervec_arith::AlignedBytes;
use ciphervec_he::lattice::ring::{
    self, AnswerWords, Ciphertext, DEGREE, EvaluationKeys, Expanded, Layout, MaskSums, Masks, Ring,
};
use ciphervec_he::wire::{KeyId, Kind, Reader};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Queries expanded at once: their trees are what a query costs in memory.
const IN_FLIGHT: usize = 8;
/// Bytes of trees at once, unless one query takes more.
const TREES: usize = 256 << 20;

/// Bytes of one query's trees: a ciphertext of two polynomials a node.
fn trees_len(layouts: &[Layout]) -> usize {
    layouts.iter().map(|layout| layout.nodes() * 2 * DEGREE * size_of::<u64>()).sum()
}

fn in_flight(trees: usize) -> usize {
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
    spec: IndexSpec,
    rows: Rows,
    ring: Arc<Ring>,
    masks: Option<Arc<Masks>>,
    keys: BTreeMap<u32, Arc<EvaluationKeys>>,
}

impl RingServer {
    pub fn new(spec: IndexSpec, rows: Rows) -> Result<Self> {
        let ring = Arc::new(Ring::new()?);
        Ok(RingServer { spec, rows, ring, masks: None, keys: BTreeMap::new() })
    }
}

impl ServerHalf for RingServer {
    fn with_keys(&self, bytes: &[u8], _held: Option<KeyId>) -> Result<(Arc<dyn ServerHalf>, u32)> {
        let dimension = self.spec.dimension();
        let keys = EvaluationKeys::from_bytes(&self.ring, bytes, dimension)?;
        self.spec.expect_id(Kind::EvaluationKeys.as_str(), keys.binding().index)?;
        let (epoch, seed) = (keys.epoch(), keys.binding().mask_seed);
        let mut next = self.clone();
        if next.masks.as_ref().is_none_or(|masks| *masks.seed() != seed) {
            next.masks = Some(Arc::new(Masks::new(seed, dimension)));
        }
        next.keys.insert(epoch, Arc::new(keys));
        Ok((Arc::new(next), epoch))
    }

    fn without_epoch(&self, epoch: u32) -> Option<Arc<dyn ServerHalf>> {
        let mut next = self.clone();
        next.keys.remove(&epoch)?;
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
        Ok(requests.into_iter().map(|request| self.answer(request, rows)).collect())
    }
}

/// Where one segment's answers lie in a response.
struct Part<'a> {
    entry: &'a SegmentEntry,
    layout: usize,
    /// Bytes of one query's answer.
    length: usize,
    start: usize,
}

/// A response laid out and not yet filled in.
struct Laid<'a> {
    layouts: Vec<Layout>,
    /// Those of each level's answers.
    words: Vec<AnswerWords>,
    writer: ResponseWriter,
    /// Where the mask sums of each level start.
    sums_at: Vec<usize>,
    parts: Vec<Part<'a>>,
}

impl RingServer {
    fn answer(&self, request: Request<'_>, rows: &dyn SegmentReader) -> Result<Evaluation> {
        let Request { head, key, mut body, chosen } = request;
        let missing = Error::NoEvaluationKeys { epoch: head.epoch };
        let (Some(masks), Some(keys)) = (&self.masks, self.keys.get(&head.epoch)) else {
            return Err(missing);
        };
        expect_key(Kind::Query.as_str(), keys.key_id(), key)?;
        let mut timings = ServerTimings::default();
        let mut laid = self.lay_out(&head, &chosen)?;
        let seed: [u8; 32] = body.array()?;
        let count = head.count as usize;
        let at_once = in_flight(trees_len(&laid.layouts));
        for first in (0..count).step_by(at_once) {
            let start = Stopwatch::start();
            let queries = first..(first + at_once).min(count);
            let group = queries
                .map(|query| self.expand(keys, &seed, query, &laid.layouts, &mut body))
                .collect::<Result<Vec<_>>>()?;
            self.write_sums(masks, &group, first, &mut laid);
            timings.expand += start.seconds();
            self.write_scores(&group, first, rows, &mut laid, &mut timings)?;
        }
        body.finish()?;
        let start = Stopwatch::start();
        let bytes = laid.writer.finish(&self.spec, key);
        timings.respond += start.seconds();
        Ok(Evaluation { bytes, timings })
    }

    /// The whole response is laid out first, then written in place as queries are answered.
    fn lay_out<'a>(&self, head: &QueryHead, chosen: &[Chosen<'a>]) -> Result<Laid<'a>> {
        let (spec, count) = (&self.spec, head.count as usize);
        let layouts = self.layouts(head.top_level, chosen)?;
        let words = layouts.iter().map(|layout| answer_words(head.words.as_ref(), layout.level()));
        let words = words.collect::<Result<Vec<_>>>()?;
        let levels = match self.rows {
            Rows::Encrypted => layouts.len(),
            Rows::Plain => 0,
        };
        // Every level of a chosen segment is among the layouts.
        let place = |entry: &SegmentEntry| {
            let layout = layouts.iter().position(|layout| layout.level() == entry.head.level)?;
            Some((layout, words[layout].answer_len(&layouts[layout], entry.head.rows as usize)))
        };
        let sums = words.iter().take(levels).map(|words| 1 + count * words.sums_len());
        let mut capacity = 32 + sums.sum::<usize>();
        for (entry, matching) in chosen {
            capacity += 22 + matching.as_ref().map_or(0, |rows| rows.len().div_ceil(8));
            capacity += count * place(entry).map_or(0, |(_, length)| length);
        }
        let mut writer = ResponseWriter::new(spec, head, levels as u8, capacity);
        let mut sums_at = Vec::with_capacity(levels);
        for (layout, words) in layouts.iter().zip(&words).take(levels) {
            writer.body().push(layout.level());
            sums_at.push(writer.reserve(count * words.sums_len()).start);
        }
        writer.segments(chosen.len() as u32);
        let mut parts = Vec::with_capacity(chosen.len());
        for (entry, matching) in chosen {
            let Some((layout, length)) = place(entry) else { continue };
            let head = &entry.head;
            writer.segment(head.id, head.rows, head.level, matching.as_deref());
            let start = writer.reserve(count * length).start;
            parts.push(Part { entry, layout, length, start });
        }
        Ok(Laid { layouts, words, writer, sums_at, parts })
    }

    /// Reads one query and expands it to a tree for every level.
    fn expand(
        &self,
        keys: &EvaluationKeys,
        seed: &[u8; 32],
        query: usize,
        layouts: &[Layout],
        body: &mut Reader<'_>,
    ) -> Result<Vec<Expanded>> {
        let pieces = Layout::new(self.spec.dimension(), 0)?.chunks();
        let first = query * pieces;
        let ciphertexts = (first..first + pieces)
            .map(|piece| Ciphertext::read(&self.ring, body, seed, piece as u64))
            .collect::<core::result::Result<Vec<_>, _>>()?;
        Ok(ring::expand(&self.ring, keys, &ciphertexts, layouts)?)
    }

    fn write_sums(
        &self,
        masks: &Masks,
        group: &[Vec<Expanded>],
        first: usize,
        laid: &mut Laid<'_>,
    ) {
        for (index, &at) in laid.sums_at.iter().enumerate() {
            let trees = of_level(group, index);
            let words = laid.words[index];
            let sums = MaskSums::compute(&self.ring, masks, &laid.layouts[index], &trees);
            for (query, sums) in sums.iter().enumerate() {
                let at = at + (first + query) * words.sums_len();
                sums.write(&self.ring, words, laid.writer.span(at..at + words.sums_len()));
            }
        }
    }

    fn write_scores(
        &self,
        group: &[Vec<Expanded>],
        first: usize,
        rows: &dyn SegmentReader,
        laid: &mut Laid<'_>,
        timings: &mut ServerTimings,
    ) -> Result<()> {
        let segments = rows_of(rows.parser(), laid.parts.iter().map(|part| part.entry));
        for (part, segment) in laid.parts.iter().zip(segments) {
            let (trees, segment) = (of_level(group, part.layout), segment?);
            let (rows, layout) = (part.entry.head.rows as usize, &laid.layouts[part.layout]);
            let words = laid.words[part.layout];
            for blocks in layout.ranges(rows, trees.len()) {
                let start = Stopwatch::start();
                let products =
                    ring::scan(&self.ring, layout, segment.data(), rows, blocks.clone(), &trees);
                timings.scan += start.seconds();
                let start = Stopwatch::start();
                for (query, sums) in products.iter().enumerate() {
                    let at = part.start + (first + query) * part.length;
                    let out = laid.writer.span(at..at + part.length);
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
fn of_level(group: &[Vec<Expanded>], level: usize) -> Vec<&Expanded> {
    group.iter().map(|trees| &trees[level]).collect()
}
