//! Halves of an answer: the server computes U or V of every segment, from ciphertexts with their seeds or from seeds alone; two
//! halves are joined to a whole.
//!
//! Two queries share a scan: the half of each stands where a whole one has its two components.

use super::packing::answer_words;
use super::server::{RingServer, Work, in_flight, of_level, trees_len};
use crate::error::Result;
use crate::index::form::Rows;
use crate::index::spec::IndexSpec;
use crate::search::entry::{SegmentReader, rows_of};
use crate::search::form::contract::ServerTimings;
use crate::search::form::halves::HalfAnswers;
use crate::search::message::{ResponseWriter, WordsAsked};
use crate::search::stopwatch::Stopwatch;
use ciphervec_he::lattice::ring::join_halves;
use ciphervec_he::lattice::ring::{self, Ciphertext, Expanded, Half, Layout, write_halves};
use ciphervec_he::wire::Reader;
use std::ops::Range;

impl HalfAnswers for Rows {
    fn half_len(
        &self,
        spec: &IndexSpec,
        rows: usize,
        level: u8,
        words: Option<&WordsAsked>,
        half: Half,
    ) -> Result<usize> {
        let layout = Layout::new(spec.dimension(), level)?;
        Ok(answer_words(words, level)?.half_len(half, &layout, rows))
    }

    fn join(
        &self,
        spec: &IndexSpec,
        level: u8,
        words: Option<&WordsAsked>,
        [linear, constant]: [&[u8]; 2],
        out: &mut [u8],
    ) -> Result<()> {
        let layout = Layout::new(spec.dimension(), level)?;
        join_halves(&layout, answer_words(words, level)?, linear, constant, out);
        Ok(())
    }
}

impl RingServer {
    /// Writes half of the answers into the response that was laid out for them, each part where `parts_at` says.
    pub(super) fn write_half(
        &self,
        work: &Work<'_>,
        half: Half,
        body: &mut Reader<'_>,
        rows: &dyn SegmentReader,
        parts_at: &[usize],
        writer: &mut ResponseWriter,
    ) -> Result<ServerTimings> {
        let (mut timings, count) = (ServerTimings::default(), work.count());
        let at_once = 2 * in_flight(trees_len(&work.layouts));
        for first in (0..count).step_by(at_once) {
            let start = Stopwatch::start();
            let last = (first + at_once).min(count);
            let pairs = (first..last).step_by(2);
            let pairs = pairs
                .map(|first| self.expand_pair(work, half, (last - first).min(2), body))
                .collect::<Result<Vec<_>>>()?;
            timings.expand += start.seconds();
            let place = (first..last, parts_at);
            self.write_half_scores(work, half, &pairs, place, rows, writer, &mut timings)?;
        }
        Ok(timings)
    }

    /// Reads one query or two, and expands them to trees that hold the half of both.
    fn expand_pair(
        &self,
        work: &Work<'_>,
        half: Half,
        queries: usize,
        body: &mut Reader<'_>,
    ) -> Result<Vec<Expanded>> {
        let pieces = Layout::new(self.spec.dimension(), 0)?.chunks() as u64;
        let mut read = || -> Result<Vec<Ciphertext>> {
            let seed: [u8; 32] = body.array()?;
            let piece = |piece| match half {
                Half::Linear => Ok(Ciphertext::masks_alone(&self.ring, &seed, piece)),
                Half::Constant => Ok(Ciphertext::read(&self.ring, body, &seed, piece)?),
            };
            (0..pieces).map(piece).collect()
        };
        let first = read()?;
        let second = if queries == 2 { Some(read()?) } else { None };
        let (keys, second) = (&work.keys.keys, second.as_deref());
        Ok(ring::expand_halves(&self.ring, keys, half, &first, second, &work.layouts)?)
    }

    #[expect(clippy::too_many_arguments, reason = "those of whole answers, and the half")]
    fn write_half_scores(
        &self,
        work: &Work<'_>,
        half: Half,
        pairs: &[Vec<Expanded>],
        (queries, parts_at): (Range<usize>, &[usize]),
        rows: &dyn SegmentReader,
        writer: &mut ResponseWriter,
        timings: &mut ServerTimings,
    ) -> Result<()> {
        let segments = rows_of(rows.parser(), work.parts.iter().map(|part| part.entry));
        for ((part, segment), at) in work.parts.iter().zip(segments).zip(parts_at) {
            let (trees, segment) = (of_level(pairs, part.layout), segment?);
            let (rows, layout) = (part.entry.head.rows as usize, &work.layouts[part.layout]);
            let (words, length) = (work.words[part.layout], part.length);
            for blocks in layout.ranges(rows, trees.len()) {
                let start = Stopwatch::start();
                let products =
                    ring::scan(&self.ring, layout, segment.data(), rows, blocks.clone(), &trees);
                timings.scan += start.seconds();
                let start = Stopwatch::start();
                let out = writer.span(at + queries.start * length..at + queries.end * length);
                for (sums, out) in products.iter().zip(out.chunks_mut(2 * length)) {
                    let mut outs: Vec<&mut [u8]> = out.chunks_mut(length).collect();
                    let blocks = blocks.clone();
                    write_halves(&self.ring, layout, words, half, blocks, sums, &mut outs);
                }
                timings.respond += start.seconds();
            }
        }
        Ok(())
    }
}
