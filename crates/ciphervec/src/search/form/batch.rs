//! Batched scan: requests that waited together enter, their answers leave, by one pass over memory for all of them. Server only.
//!
//! A scan is bound by memory bandwidth, so that sixteen queries in one pass take little longer than one. Answers are, bit for
//! bit, those that each request would have got alone, and a request that is refused is refused alone.

use super::contract::{Evaluation, Request, ServerTimings};
use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::entry::{Chosen, SegmentEntry, SegmentReader, rows_of};
use crate::search::message::ResponseWriter;
use crate::search::segment::Segment;
use crate::search::stopwatch::Stopwatch;
use ciphervec_he::wire::{KeyId, Reader};
use std::collections::HashSet;

/// What a form with plain queries does with one segment.
pub trait Scan {
    /// The numbers of a request.
    type Queries;

    /// Reads the `count` queries of a request that names `key`.
    fn read(&self, count: u32, key: KeyId, body: Reader<'_>) -> Result<Self::Queries>;

    /// Appends the answers over one segment to each request's body.
    fn scan(&self, segment: &Segment, asked: &mut [&mut Pending<'_, Self::Queries>]) -> Result<()>;

    /// Bytes of one query's answer over a segment, where they are known beforehand.
    fn answer_len(&self, _entry: &SegmentEntry) -> usize {
        0
    }

    /// The key that answers name.
    fn response_key(&self) -> KeyId {
        KeyId::default()
    }
}

/// One request of the pass, and its answer as far as it has come.
pub struct Pending<'a, Q> {
    pub count: u32,
    pub queries: Q,
    chosen: std::vec::IntoIter<Chosen<'a>>,
    next: Option<Chosen<'a>>,
    writer: ResponseWriter,
}

impl<'a, Q> Pending<'a, Q> {
    fn new<S: Scan<Queries = Q>>(scan: &S, spec: &IndexSpec, request: Request<'a>) -> Result<Self> {
        let Request { head, key, body, chosen } = request;
        let queries = scan.read(head.count, key, body)?;
        let mut capacity = 32;
        for (entry, matching) in &chosen {
            capacity += 22 + matching.as_ref().map_or(0, |rows| rows.len().div_ceil(8));
            capacity += head.count as usize * scan.answer_len(entry);
        }
        let mut writer = ResponseWriter::new(spec, &head, 0, capacity);
        writer.segments(chosen.len() as u32);
        let mut chosen = chosen.into_iter();
        let next = chosen.next();
        Ok(Pending { count: head.count, queries, chosen, next, writer })
    }

    /// The queries, and where their answers go.
    pub fn parts(&mut self) -> (&Q, &mut Vec<u8>) {
        (&self.queries, self.writer.body())
    }

    /// The segments that this request is about and that have not come yet.
    fn about(&self) -> impl Iterator<Item = &'a SegmentEntry> {
        self.next.iter().chain(self.chosen.as_slice()).map(|(entry, _)| *entry)
    }

    /// Whether this request is about the segment; if so, its head has been written.
    fn begins(&mut self, entry: &SegmentEntry) -> bool {
        let Some((_, matching)) = self.next.take_if(|(next, _)| std::ptr::eq(*next, entry)) else {
            return false;
        };
        self.writer.segment(entry.head.id, entry.head.rows, 0, matching.as_deref());
        self.next = self.chosen.next();
        true
    }
}

/// Answers all requests by one pass over the segments that they are about.
///
/// # Errors
/// A segment that could not be read.
pub fn scan<S: Scan>(
    scan: &S,
    spec: &IndexSpec,
    requests: Vec<Request<'_>>,
    rows: &dyn SegmentReader,
) -> Result<Vec<Result<Evaluation>>> {
    let start = Stopwatch::start();
    let mut asked: Vec<Result<Pending<'_, S::Queries>>> =
        requests.into_iter().map(|request| Pending::new(scan, spec, request)).collect();
    let expand = start.seconds();
    pass(scan, asked.iter_mut().flatten().collect(), rows)?;
    let timings = ServerTimings { expand, scan: start.seconds() - expand, respond: 0.0 };
    let finish = |asked: Pending<'_, S::Queries>| {
        let start = Stopwatch::start();
        let bytes = asked.writer.finish(spec, scan.response_key());
        let respond = start.seconds();
        Evaluation { bytes, timings: ServerTimings { respond, ..timings } }
    };
    Ok(asked.into_iter().map(|asked| asked.map(finish)).collect())
}

fn pass<'a, S: Scan>(
    scan: &S,
    mut asked: Vec<&mut Pending<'a, S::Queries>>,
    rows: &dyn SegmentReader,
) -> Result<()> {
    let wanted: Vec<&SegmentEntry> = match asked.as_slice() {
        [alone] => alone.about().collect(),
        _ => {
            let ids = asked.iter().flat_map(|asked| asked.about().map(|entry| entry.head.id.0));
            let ids: HashSet<[u8; 16]> = ids.collect();
            let every = rows.entries().iter().map(AsRef::as_ref);
            every.filter(|entry| ids.contains(&entry.head.id.0)).collect()
        }
    };
    for (entry, segment) in wanted.iter().zip(rows_of(rows.parser(), wanted.iter().copied())) {
        let segment = segment?;
        let mut about: Vec<&mut Pending<'a, S::Queries>> = asked
            .iter_mut()
            .filter_map(|asked| asked.begins(entry).then_some(&mut **asked))
            .collect();
        scan.scan(&segment, &mut about)?;
    }
    Ok(())
}
