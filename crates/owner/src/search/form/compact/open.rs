//! Opens answers of the compact form: checked estimates of masked sums, and cosines that depend on rows and queries alone.
//! Owner only.

use super::context::{Context, Integers, SegmentSecrets};
use super::scale::scales;
use crate::error::{Error, Result};
use crate::search::form::contract::{
    AnswerPart, Estimates, ExactCosine, OpenedSegment, Opening, RowSum, Secrets,
};
use ciphervec_arith::parallel::*;
use ciphervec_he_secret::lattice::compact::{
    self, AskedQueries, MaskedSum, Scratch, Unmasked, Witness, Words,
};
use std::cell::OnceCell;
use zeroize::Zeroizing;

/// The answers to some queries, which are made ready when the first segment comes.
pub struct CompactScores<'a> {
    context: &'a Context,
    integers: &'a Integers,
    asked: OnceCell<AskedQueries>,
}

impl<'a> CompactScores<'a> {
    pub fn new(context: &'a Context, integers: &'a Integers) -> Self {
        CompactScores { context, integers, asked: OnceCell::new() }
    }

    fn witness<'b>(&self, segment: &OpenedSegment<'b>) -> Result<Option<Witness<'b>>> {
        self.context.witness(segment.id, segment.rows, segment.witness)
    }

    fn secrets<'b>(&self, segment: &OpenedSegment<'b>) -> Result<Secrets<'b, SegmentSecrets>> {
        segment.secrets(|| {
            self.context.secrets(segment.root, segment.id, segment.rows, segment.witness)
        })
    }

    fn query(&self, index: usize) -> &[i64] {
        let dimension = self.context.spec.dimension();
        &self.integers[index * dimension..][..dimension]
    }

    fn bounds(&self, query: usize) -> Bounds {
        let (Context { spec, width, .. }, query) = (self.context, self.query(query));
        let slack = width.slack(query) / f64::from(1u32 << width.dropped_bits());
        let slack = slack / self.unit() + ROUNDING;
        // By Cauchy and Schwarz, as a vector was rounded from a unit one.
        let norm = query.iter().map(|weight| (*weight as f64).powi(2)).sum::<f64>().sqrt();
        let longest = scales(spec, *width).vector + 0.5 * (spec.dimension() as f64).sqrt();
        Bounds { slack, largest: norm * longest / self.unit() + slack + 1e-9 }
    }

    /// What an inner product of integers stands for when it is a cosine of 1.
    fn unit(&self) -> f64 {
        let scales = scales(&self.context.spec, self.context.width);
        scales.vector * scales.query
    }
}

/// What is certain of a query's estimates.
#[derive(Clone, Copy)]
struct Bounds {
    /// None is further from what settling gives.
    slack: f64,
    /// No row's is larger.
    largest: f64,
}

/// What computing a cosine in doubles is off by, many times over.
const ROUNDING: f64 = 1e-14;
/// Blocks times queries that are opened before they are ranked.
const AT_ONCE: usize = 64;

impl Opening for CompactScores<'_> {
    fn estimate(
        &self,
        segment: &OpenedSegment<'_>,
        part: &AnswerPart<'_>,
        visit: &mut dyn FnMut(usize, &Estimates<'_>) -> Result<()>,
    ) -> Result<()> {
        let Context { width, scheme, masks, .. } = self.context;
        let (degree, count) = (width.degree(), part.queries.len());
        let (from, rows) = (part.rows.start, part.rows.len());
        let secrets = self.secrets(segment)?;
        let SegmentSecrets { key, check } = &*secrets;
        let exact = self.witness(segment)?.is_some();
        let asked = self.asked.get_or_init(|| AskedQueries::new(scheme, masks, self.integers));
        let unit = f64::exp2(-f64::from(width.dropped_bits())) / self.unit();
        let bounds: Vec<Bounds> = part.queries.clone().map(|query| self.bounds(query)).collect();
        let at_once = (AT_ONCE / count.max(1)).min(rows.div_ceil(degree)).max(1);
        let mut sums = Zeroizing::new(vec![0i64; at_once * count * degree]);
        let mut cosines = Zeroizing::new(vec![0.0; at_once * count * degree]);
        let mut extents = Zeroizing::new(vec![(0i64, 0i64); at_once * count]);
        let mut sound = true;
        for start in (0..rows).step_by(at_once * degree) {
            let blocks = (rows - start).div_ceil(degree).min(at_once);
            let room = { sums.par_chunks_mut(degree).zip(cosines.par_chunks_mut(degree)) }
                .zip(extents.par_iter_mut());
            // All queries of a block, then those of the next: its weights stay in the cache.
            let checks = room.take(blocks * count).enumerate().map_init(
                || (Words::zeroed(*width, 0), Scratch::default()),
                |(words, scratch), (index, ((sums, cosines), extent))| {
                    let (block, query) = (start / degree + index / count, index % count);
                    let here = block * degree..rows.min((block + 1) * degree);
                    let query = part.queries.start + query;
                    words.read(*width, width.of_block(part.answer(query), block));
                    let (asked, block) = ((asked, query), from / degree + block);
                    let sound = check
                        .as_ref()
                        .is_none_or(|check| check.verify(asked.0, query, block, words));
                    let out = Unmasked {
                        sums: &mut sums[..here.len()],
                        scaled: &mut cosines[..here.len()],
                    };
                    *extent =
                        compact::unmask(scheme, key, asked, (block, words), unit, scratch, out);
                    sound
                },
            );
            sound &= checks.min().unwrap_or(true);
            for index in 0..blocks * count {
                let (first, query) = (start + index / count * degree, index % count);
                let here = index * degree..index * degree + degree.min(rows - first);
                let ((least, greatest), Bounds { slack, largest }) =
                    (extents[index], bounds[query]);
                let estimates = Estimates {
                    first: from + first,
                    cosines: &cosines[here.clone()],
                    extent: (least as f64 * unit, greatest as f64 * unit),
                    sums: if exact { &sums[here] } else { &[] },
                    slack: if exact { slack } else { 0.0 },
                    largest: exact.then_some(largest),
                };
                visit(part.queries.start + query, &estimates)?;
            }
        }
        if sound { Ok(()) } else { Err(Error::Tampered { segments: vec![segment.id] }) }
    }

    fn settle(&self, segment: &OpenedSegment<'_>, sums: &[RowSum]) -> Result<Vec<ExactCosine>> {
        let Context { scheme, masks, .. } = self.context;
        let Some(witness) = self.witness(segment)? else { return Ok(Vec::new()) };
        let secrets = self.secrets(segment)?;
        let key = &secrets.key;
        let sums: Vec<MaskedSum> =
            sums.iter().map(|&RowSum { query, row, sum }| MaskedSum { query, row, sum }).collect();
        let settled = compact::settle(scheme, masks, key, &witness, self.integers, &sums);
        let unit = self.unit();
        let exact = |integer: i64| ExactCosine { integer, cosine: integer as f64 / unit };
        Ok(settled.into_iter().map(exact).collect())
    }
}
