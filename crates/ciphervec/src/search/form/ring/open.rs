//! Opening ring scores: an encrypted answer and a query's key enter, cosines leave. Owner only.

use super::packing::answer_words;
use crate::error::{Error, Result};
use crate::index::form::Rows;
use crate::index::spec::IndexSpec;
use crate::search::form::contract::{
    AnswerPart, Estimates, LevelSums, OpenedSegment, Opening, Secrets,
};
use crate::search::message::WordsAsked;
use ciphervec_he::lattice::Scales;
use ciphervec_he::lattice::ring::{Layout, MaskSums, QueryKey, QueryOpener, Ring, SegmentKey};
use ciphervec_he::wire::Reader;
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

const WHAT: &str = "a response";

/// What opening takes of queries that were sent.
pub struct RingQueries {
    pub epoch: u32,
    pub scales: Scales,
    pub words: Option<WordsAsked>,
}

/// The answers to some queries; `sums` are the mask sums of every level, one pair a query, where rows are encrypted.
pub struct RingScores<'a> {
    spec: &'a IndexSpec,
    rows: Rows,
    ring: &'a Ring,
    queries: &'a RingQueries,
    secret: Arc<QueryKey>,
    sums: Vec<(u8, Vec<MaskSums>)>,
}

impl<'a> RingScores<'a> {
    /// With the mask sums of an answer.
    ///
    /// # Errors
    /// Damaged ones.
    pub fn new(
        spec: &'a IndexSpec,
        rows: Rows,
        ring: &'a Ring,
        queries: &'a RingQueries,
        secret: Arc<QueryKey>,
        sums: &[LevelSums],
    ) -> Result<Self> {
        let read = |of: &LevelSums| {
            let words = answer_words(queries.words.as_ref(), of.level)?;
            let sums = of
                .sums
                .iter()
                .map(|bytes| Ok(MaskSums::read(ring, words, &mut Reader::new(WHAT, bytes))?));
            Ok((of.level, sums.collect::<Result<_>>()?))
        };
        let sums = sums.iter().map(read).collect::<Result<_>>()?;
        Ok(RingScores { spec, rows, ring, queries, secret, sums })
    }
}

impl Opening for RingScores<'_> {
    fn estimate(
        &self,
        segment: &OpenedSegment<'_>,
        part: &AnswerPart<'_>,
        visit: &mut dyn FnMut(usize, &Estimates<'_>) -> Result<()>,
    ) -> Result<()> {
        let (ring, level, rows) = (self.ring, segment.level, &part.rows);
        let layout = Layout::new(self.spec.dimension(), level)?;
        let first = rows.start / layout.vectors_per_block();
        let key = match self.rows {
            Rows::Encrypted => Some(self.key(segment, &layout, first..layout.blocks(rows.end))?),
            Rows::Plain => None,
        };
        let sums = self.sums.iter().find(|(of, _)| *of == level).map(|(_, sums)| sums);
        if key.is_some() != sums.is_some() {
            let detail = format!("the answer has no mask sums of level {level}");
            return Err(Error::Directory { segment: segment.id.to_string(), detail });
        }
        let scales = self.queries.scales;
        let inverse = 1.0 / (scales.vector * scales.query * f64::exp2(f64::from(level)));
        let words = answer_words(self.queries.words.as_ref(), level)?;
        let mut cosines = Zeroizing::new(vec![0.0; rows.len()]);
        for query in part.queries.clone() {
            let masked = sums.map(|sums| &sums[query]);
            let opener = QueryOpener::new(ring, &self.secret, masked);
            opener.open(&layout, key.as_deref(), words, first, part.answer(query), &mut cosines);
            cosines.iter_mut().for_each(|cosine| *cosine *= inverse);
            visit(query, &Estimates { first: rows.start, ..Estimates::settled(&cosines) })?;
        }
        Ok(())
    }
}

impl RingScores<'_> {
    /// The secrets of these blocks of a segment, or of all that are kept.
    fn key<'b>(
        &self,
        segment: &OpenedSegment<'b>,
        layout: &Layout,
        blocks: Range<usize>,
    ) -> Result<Secrets<'b, SegmentKey>> {
        let blocks = if segment.keep { 0..layout.blocks(segment.rows) } else { blocks };
        segment.secrets(|| {
            let (master, binding) = (segment.root.master(), self.spec.binding());
            Ok(SegmentKey::derive_blocks(self.ring, master, &binding, segment.id, blocks))
        })
    }
}
