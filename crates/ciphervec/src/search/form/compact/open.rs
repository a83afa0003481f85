//! Opening compact answers: masked sums enter; checked estimates leave, and cosines that depend on rows and queries
//! alone. Owner only.

use super::context::{Context, Integers, SegmentSecrets};
use super::scale::scales;
use crate::error::{Error, Result};
use crate::search::form::contract::{Estimates, ExactCosine, OpenedSegment, Opening, RowSum};
use ciphervec_he::lattice::compact::{self, MaskedSum, Witness};
use std::cell::OnceCell;
use zeroize::Zeroizing;

/// The answers to some queries; `combined` are the public masks times each query, made when the first segment comes.
pub struct CompactScores<'a> {
    context: &'a Context,
    integers: &'a Integers,
    count: usize,
    combined: OnceCell<Vec<u64>>,
}

impl<'a> CompactScores<'a> {
    pub fn new(context: &'a Context, integers: &'a Integers, count: usize) -> Self {
        CompactScores { context, integers, count, combined: OnceCell::new() }
    }

    fn witness<'b>(&self, segment: &OpenedSegment<'b>) -> Result<Option<Witness<'b>>> {
        self.context.witness(segment.id, segment.rows, segment.witness)
    }

    fn secrets<'b>(&self, segment: &'b OpenedSegment<'b>) -> Result<&'b SegmentSecrets> {
        segment.secrets(|| {
            self.context.secrets(segment.root, segment.id, segment.rows, segment.witness)
        })
    }

    fn query(&self, index: usize) -> &[i64] {
        let dimension = self.context.spec.dimension();
        &self.integers[index * dimension..][..dimension]
    }

    /// What an inner product of integers stands for when it is a cosine of 1.
    fn unit(&self) -> f64 {
        let scales = scales(&self.context.spec, self.context.width);
        scales.vector * scales.query
    }
}

/// What computing a cosine in doubles is off by, many times over.
const ROUNDING: f64 = 1e-14;

impl Opening for CompactScores<'_> {
    fn estimate(
        &self,
        segment: &OpenedSegment<'_>,
        answers: &[u8],
        visit: &mut dyn FnMut(usize, &Estimates<'_>) -> Result<()>,
    ) -> Result<()> {
        let Context { spec, width, scheme, masks } = self.context;
        let (rows, degree) = (segment.rows, width.degree());
        let SegmentSecrets { key, weights } = self.secrets(segment)?;
        let witness = self.witness(segment)?;
        let combined = self.combined.get_or_init(|| masks.combine(self.integers));
        let step = f64::exp2(-f64::from(width.dropped_bits()));
        let (unit, scale) = (self.unit(), scales(spec, *width).vector);
        let length = rows * width.word_bytes();
        let mut sums = Zeroizing::new(vec![0i64; rows]);
        let mut cosines = Zeroizing::new(vec![0.0; rows]);
        for index in 0..self.count {
            let (mask, answer, query) = (
                &combined[index * degree..][..degree],
                &answers[index * length..][..length],
                self.query(index),
            );
            if let (Some(witness), Some(weights)) = (&witness, weights)
                && !weights.verify(witness, query, answer, segment.deleted)
            {
                return Err(Error::Tampered { segments: vec![segment.id] });
            }
            compact::unmask(scheme, key, mask, answer, &mut sums);
            let inverse = 1.0 / unit;
            for (cosine, sum) in cosines.iter_mut().zip(sums.iter()) {
                *cosine = *sum as f64 * step * inverse;
            }
            if witness.is_none() {
                visit(index, &Estimates::settled(&cosines))?;
                continue;
            }
            let slack = width.slack(query) * step / unit + ROUNDING;
            // By Cauchy and Schwarz, as a vector was rounded from a unit one.
            let norm = query.iter().map(|weight| (*weight as f64).powi(2)).sum::<f64>().sqrt();
            let longest = scale + 0.5 * (spec.dimension() as f64).sqrt();
            let largest = norm * longest / unit + slack + 1e-9;
            visit(
                index,
                &Estimates { cosines: &cosines, sums: &sums, slack, largest: Some(largest) },
            )?;
        }
        Ok(())
    }

    fn settle(&self, segment: &OpenedSegment<'_>, sums: &[RowSum]) -> Result<Vec<ExactCosine>> {
        let Context { scheme, masks, .. } = self.context;
        let Some(witness) = self.witness(segment)? else { return Ok(Vec::new()) };
        let key = &self.secrets(segment)?.key;
        let sums: Vec<MaskedSum> =
            sums.iter().map(|&RowSum { query, row, sum }| MaskedSum { query, row, sum }).collect();
        let settled = compact::settle(scheme, masks, key, &witness, self.integers, &sums);
        let settled = settled.ok_or_else(|| Error::Tampered { segments: vec![segment.id] })?;
        let unit = self.unit();
        let exact = |integer: i64| ExactCosine { integer, cosine: integer as f64 / unit };
        Ok(settled.into_iter().map(exact).collect())
    }
}
