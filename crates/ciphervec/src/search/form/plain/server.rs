//! Inner products of float32 queries and rows in mode `open`, summed in double precision, for the server.

use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::entry::{SegmentEntry, SegmentReader};
use crate::search::form::batch::{self, Pending, Scan};
use crate::search::form::contract::{
    Evaluation, Request, ServerHalf, ServerTimings, Sink, no_keys,
};
use crate::search::segment::{HEADROOM, Segment, SegmentHead};
use ciphervec_arith::AlignedBytes;
use ciphervec_arith::float_scan::scan_f32;
use ciphervec_he::wire::{KeyId, Kind, Reader};
use std::sync::Arc;

pub struct PlainServer {
    spec: IndexSpec,
}

impl PlainServer {
    pub fn new(spec: IndexSpec) -> Self {
        PlainServer { spec }
    }
}

impl ServerHalf for PlainServer {
    fn with_keys(&self, _bytes: &[u8], _held: Option<KeyId>) -> Result<(Arc<dyn ServerHalf>, u32)> {
        Err(no_keys(&self.spec))
    }

    fn read_rows(&self, head: SegmentHead, bytes: AlignedBytes) -> Result<Segment> {
        let words = bytes[HEADROOM..].as_chunks::<4>().0;
        if words.iter().any(|word| !f32::from_le_bytes(*word).is_finite()) {
            let what = Kind::Segment.as_str();
            return Err(Reader::new(what, &[]).error("finite numbers expected").into());
        }
        Ok(Segment::of_words(head, None, bytes))
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

impl Scan for PlainServer {
    type Queries = Vec<f32>;

    fn read(&self, count: u32, _key: KeyId, mut body: Reader<'_>) -> Result<Vec<f32>> {
        let words = body.take(count as usize * self.spec.dimension() * 4)?.as_chunks::<4>().0;
        let values: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
        if values.iter().any(|value| !value.is_finite()) {
            return Err(body.error("finite numbers expected").into());
        }
        body.finish()?;
        Ok(values)
    }

    fn scan(&self, segment: &Segment, asked: &mut [&mut Pending<'_, Vec<f32>>]) -> Result<()> {
        let (dimension, rows) = (self.spec.dimension(), segment.head().rows as usize);
        let queries: Vec<f32> =
            asked.iter().flat_map(|asked| asked.queries.iter().copied()).collect();
        let mut scores = vec![[0; 4]; queries.len() / dimension * rows];
        scan_f32(segment.data(), rows, dimension, &queries, &mut scores);
        let mut scores = scores.as_flattened();
        for asked in asked {
            let own = scores.split_off(..4 * rows * asked.count as usize);
            asked.parts().1.extend_from_slice(own.unwrap_or_default());
        }
        Ok(())
    }

    fn answer_len(&self, entry: &SegmentEntry) -> Option<usize> {
        Some(entry.head.rows as usize * size_of::<f32>())
    }
}
