//! Opening ring scores: an encrypted answer and a query's key enter, cosines leave. Owner only.

use crate::error::{Error, Result};
use crate::index::form::Rows;
use crate::index::spec::IndexSpec;
use crate::search::form::contract::{Estimates, OpenedSegment, Opening};
use ciphervec_he::lattice::Scales;
use ciphervec_he::lattice::ring::{
    self, Layout, MaskSums, QueryKey, QueryOpener, Ring, SegmentKey,
};
use ciphervec_he::wire::Reader;
use std::sync::Arc;
use zeroize::Zeroizing;

/// What opening takes of queries that were sent.
pub struct RingQueries {
    pub epoch: u32,
    pub scales: Scales,
}

/// The answers to some queries; `sums` are the mask sums of every level, one pair a query, where rows are encrypted.
pub struct RingScores<'a> {
    spec: &'a IndexSpec,
    rows: Rows,
    ring: &'a Ring,
    queries: &'a RingQueries,
    secret: Arc<QueryKey>,
    count: usize,
    sums: Vec<(u8, Vec<MaskSums>)>,
}

impl<'a> RingScores<'a> {
    /// Reads the mask sums of an answer to `count` queries.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn read(
        spec: &'a IndexSpec,
        rows: Rows,
        ring: &'a Ring,
        queries: &'a RingQueries,
        secret: Arc<QueryKey>,
        count: usize,
        reader: &mut Reader<'_>,
    ) -> Result<Self> {
        let levels = reader.u8()?;
        let sums = (0..levels).map(|_| {
            let level = reader.u8()?;
            let sums = (0..count)
                .map(|_| MaskSums::read(ring, reader))
                .collect::<core::result::Result<_, _>>()?;
            Ok((level, sums))
        });
        let sums = sums.collect::<Result<_>>()?;
        Ok(RingScores { spec, rows, ring, queries, secret, count, sums })
    }
}

impl Opening for RingScores<'_> {
    fn estimate(
        &self,
        segment: &OpenedSegment<'_>,
        answers: &[u8],
        visit: &mut dyn FnMut(usize, &Estimates<'_>) -> Result<()>,
    ) -> Result<()> {
        let (ring, level, rows) = (self.ring, segment.level, segment.rows);
        let layout = Layout::new(self.spec.dimension(), level)?;
        let key = match self.rows {
            Rows::Encrypted => Some(segment.secrets(|| {
                let (master, binding) = (segment.root.master(), self.spec.binding());
                Ok(SegmentKey::derive(ring, master, &binding, segment.id, &layout, rows))
            })?),
            Rows::Plain => None,
        };
        let sums = self.sums.iter().find(|(of, _)| *of == level).map(|(_, sums)| sums);
        if key.is_some() != sums.is_some() {
            let detail = format!("the answer has no mask sums of level {level}");
            return Err(Error::Directory { segment: segment.id.to_string(), detail });
        }
        let scales = self.queries.scales;
        let inverse = 1.0 / (scales.vector * scales.query * f64::exp2(f64::from(level)));
        let length = ring::answer_len(&layout, rows);
        let mut cosines = Zeroizing::new(vec![0.0; rows]);
        for query in 0..self.count {
            let answer = &answers[query * length..][..length];
            let masked = sums.map(|sums| &sums[query]);
            QueryOpener::new(ring, &self.secret, masked).open(&layout, key, answer, &mut cosines);
            cosines.iter_mut().for_each(|cosine| *cosine *= inverse);
            visit(query, &Estimates::settled(&cosines))?;
        }
        Ok(())
    }
}
