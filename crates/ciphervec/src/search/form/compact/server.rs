//! Multiplies plain integer queries with the encrypted words of mode `sealed-index`, for the server.

use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::entry::{SegmentEntry, SegmentReader};
use crate::search::form::batch::{self, Pending, Scan};
use crate::search::form::contract::{
    Evaluation, Request, ServerHalf, ServerTimings, Sink, no_keys,
};
use crate::search::segment::{HEADROOM, Segment, SegmentHead};
use ciphervec_arith::AlignedBytes;
use ciphervec_he::lattice::compact::{self, Width};
use ciphervec_he::wire::{KeyId, Reader};
use std::sync::Arc;

pub struct CompactServer {
    spec: IndexSpec,
    width: Width,
}

impl CompactServer {
    pub fn new(spec: IndexSpec, width: Width) -> Self {
        CompactServer { spec, width }
    }

    /// The product of every row with every query (`queries` are rows of integers): words, query by query.
    fn products(&self, segment: &Segment, queries: &[i64], out: &mut Vec<u8>) {
        let (width, dimension) = (self.width, self.spec.dimension());
        let rows = segment.head().kept as usize;
        match segment.kept() {
            None => compact::scan(width, segment.data(), rows, dimension, queries, out),
            Some(kept) => {
                let mut sums = Vec::new();
                compact::scan(width, segment.data(), rows, dimension, queries, &mut sums);
                compact::spread_sums(width, &sums, kept, out);
            }
        }
    }
}

impl ServerHalf for CompactServer {
    fn with_keys(&self, _bytes: &[u8], _held: Option<KeyId>) -> Result<(Arc<dyn ServerHalf>, u32)> {
        Err(no_keys(&self.spec))
    }

    fn read_rows(&self, head: SegmentHead, bytes: AlignedBytes) -> Result<Segment> {
        let kept = head.read_kept(&bytes[HEADROOM..])?;
        Ok(Segment::of_words(head, kept, bytes))
    }

    fn score(
        &self,
        requests: Vec<Request<'_>>,
        rows: &dyn SegmentReader,
    ) -> Result<Vec<Result<Evaluation>>> {
        batch::scan(self, &self.spec, requests, rows)
    }

    fn score_into(
        &self,
        request: Request<'_>,
        rows: &dyn SegmentReader,
        sink: &mut Sink<'_>,
    ) -> Result<ServerTimings> {
        batch::scan_into(self, &self.spec, request, rows, sink)
    }
}

impl Scan for CompactServer {
    type Queries = Vec<i64>;

    fn read(&self, count: u32, _key: KeyId, body: Reader<'_>) -> Result<Vec<i64>> {
        from_words(self.width, count as usize * self.spec.dimension(), body)
    }

    fn scan(&self, segment: &Segment, asked: &mut [&mut Pending<'_, Vec<i64>>]) -> Result<()> {
        if let [alone] = asked {
            let (queries, body) = alone.parts();
            self.products(segment, queries, body);
            return Ok(());
        }
        let together: Vec<i64> =
            asked.iter().flat_map(|asked| asked.queries.iter().copied()).collect();
        let mut sums = Vec::new();
        self.products(segment, &together, &mut sums);
        let length = segment.head().rows as usize * self.width.word_bytes();
        let mut rest = sums.as_slice();
        for asked in asked {
            let (own, others) = rest.split_at(asked.count as usize * length);
            asked.parts().1.extend_from_slice(own);
            rest = others;
        }
        Ok(())
    }

    fn answer_len(&self, entry: &SegmentEntry) -> Option<usize> {
        Some(entry.head.rows as usize * self.width.word_bytes())
    }
}

/// Reads integers, which must be all that is left.
pub fn from_words(width: Width, numbers: usize, mut body: Reader<'_>) -> Result<Vec<i64>> {
    let values = match width {
        Width::Wide => {
            let words = body.take(numbers * 8)?.as_chunks::<8>().0;
            words.iter().map(|word| i64::from_le_bytes(*word)).collect()
        }
        Width::Standard | Width::Small => {
            let words = body.take(numbers * 4)?.as_chunks::<4>().0;
            words.iter().map(|word| i64::from(i32::from_le_bytes(*word))).collect()
        }
    };
    body.finish()?;
    Ok(values)
}
