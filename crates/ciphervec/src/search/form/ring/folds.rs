//! Folded answers of a server's ring form: about those of all clusters that a query chooses under encryption. Which they are
//! shows in no length, order or time.

use super::clusters::Clusters;
use super::server::{RingServer, Work};
use crate::error::Result;
use crate::search::entry::{SegmentEntry, SegmentReader, rows_of};
use crate::search::form::contract::ServerTimings;
use crate::search::message::{ResponseWriter, chosen_place};
use crate::search::stopwatch::Stopwatch;
use ciphervec_he::lattice::retrieval::{ClusterChoice, ClusterFolds};
use ciphervec_he::lattice::ring::{self, Expanded};
use ciphervec_he::wire::Reader;

impl Work<'_> {
    /// Bytes of the answer about a cluster, the layout of all of them, and one of them.
    fn cluster(&self) -> Option<(usize, usize, &SegmentEntry)> {
        let first = self.clusters.as_ref()?.first()?;
        let layout = self.layouts.iter().position(|layout| layout.level() == first.head.level)?;
        let length = self.words[layout].answer_len(&self.layouts[layout], first.head.rows as usize);
        Some((length, layout, first))
    }

    /// Bytes of the answer about each cluster that was chosen.
    pub fn folded_lens(&self) -> impl Iterator<Item = usize> {
        let answered = self.clusters.as_ref().map_or(0, Clusters::answered);
        let length = self.cluster().map_or(0, |(length, ..)| length);
        core::iter::repeat_n(length, answered)
    }

    /// Leaves room for them, behind the head of each: where they start.
    pub fn reserve_folded(&self, writer: &mut ResponseWriter) -> Vec<usize> {
        let Some((_, _, first)) = self.cluster() else { return Vec::new() };
        let lengths = self.folded_lens().enumerate();
        lengths
            .map(|(probe, length)| {
                writer.segment(chosen_place(probe), first.head.rows, first.head.level, None);
                writer.reserve(length).start
            })
            .collect()
    }
}

impl RingServer {
    /// Reads which clusters the query chooses, scans all, and writes the answers about those.
    pub(super) fn write_folded(
        &self,
        work: &Work<'_>,
        (trees, body): (&[Expanded], &mut Reader<'_>),
        rows: &dyn SegmentReader,
        starts: &[usize],
        writer: &mut ResponseWriter,
        timings: &mut ServerTimings,
    ) -> Result<()> {
        let Some(Clusters { shape, entries }) = &work.clusters else { return Ok(()) };
        let Some((length, layout_at, first)) = work.cluster() else {
            body.take(shape.byte_len())?;
            return Ok(());
        };
        let start = Stopwatch::start();
        let choice = ClusterChoice::read(&self.ring, body, shape)?;
        let (layout, count) = (&work.layouts[layout_at], first.head.rows as usize);
        let blocks = layout.blocks(count);
        let keys = &work.keys.keys;
        let mut folds = ClusterFolds::new(&self.ring, keys, *shape, &choice, blocks)?;
        timings.expand += start.seconds();
        let start = Stopwatch::start();
        let mut segments = rows_of(rows.parser(), entries.iter().copied());
        loop {
            let run = segments.by_ref().take(ClusterFolds::RUN).collect::<Result<Vec<_>>>()?;
            if run.is_empty() {
                break;
            }
            let data: Vec<&[u8]> = run.iter().map(|segment| segment.data()).collect();
            folds.take(layout, &data, count, &trees[layout_at]);
        }
        let folded = folds.finish();
        timings.scan += start.seconds();
        let start = Stopwatch::start();
        for (sums, at) in folded.iter().zip(starts) {
            let out = writer.span(*at..at + length);
            ring::write_answer(&self.ring, layout, work.words[layout_at], 0..blocks, sums, out);
        }
        timings.respond += start.seconds();
        Ok(())
    }
}
