//! Plain scan: float32 queries enter, inner products in double precision leave. Server only.

use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::entry::SegmentReader;
use crate::search::form::batch::{self, Pending, Scan};
use crate::search::form::contract::{Evaluation, Request, ServerHalf, no_keys};
use crate::search::segment::{HEADROOM, Segment, SegmentHead};
use ciphervec_arith::AlignedBytes;
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
        let dimension = self.spec.dimension();
        for asked in asked {
            let (queries, body) = asked.parts();
            for query in queries.chunks_exact(dimension) {
                for row in segment.data().chunks_exact(dimension * 4) {
                    let score = inner_product(row, query);
                    body.extend_from_slice(&(score as f32).to_le_bytes());
                }
            }
        }
        Ok(())
    }
}

/// The inner product of a row of little-endian float32 words with a query, in double precision. Eight partial sums, so that the
/// compiler can use vector registers.
fn inner_product(row: &[u8], query: &[f32]) -> f64 {
    let product = |word: &[u8; 4], q: f32| f64::from(f32::from_le_bytes(*word)) * f64::from(q);
    let (words, _) = row.as_chunks::<4>();
    let ((words, last_words), (query, last)) = (words.as_chunks::<8>(), query.as_chunks::<8>());
    let mut sums = [0.0f64; 8];
    for (words, query) in words.iter().zip(query) {
        for lane in 0..8 {
            sums[lane] += product(&words[lane], query[lane]);
        }
    }
    let rest: f64 = last_words.iter().zip(last).map(|(word, &q)| product(word, q)).sum();
    sums.iter().sum::<f64>() + rest
}
