//! Answers requests that waited together by one pass over memory, for the server.
//!
//! A scan is bound by memory bandwidth, so that sixteen queries in one pass take little longer than one. Answers are, bit for
//! bit, those that each request would have got alone, and a request that is refused is refused alone. One request can be answered
//! piece by piece, for whoever opens it in this process.

use super::contract::{Evaluation, Request, ServerTimings, Sink, next_piece};
use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::entry::{Chosen, SegmentEntry, SegmentReader, rows_of};
use crate::search::message::{KeysName, ResponseWriter, response_len};
use crate::search::segment::Segment;
use crate::search::stopwatch::Stopwatch;
use ciphervec_he::wire::{KeyId, Reader};
use std::collections::HashSet;

/// What a form with plain queries does with one segment.
pub trait Scan: Sync {
    /// The numbers of a request.
    type Queries: Send;

    /// Reads the `count` queries of a request that names `key`.
    fn read(&self, count: u32, key: KeyId, body: Reader<'_>) -> Result<Self::Queries>;

    /// Appends the answers over one segment to each request's body.
    fn scan(&self, segment: &Segment, asked: &mut [&mut Pending<'_, Self::Queries>]) -> Result<()>;

    /// Bytes of one query's answer over a segment, where they are known beforehand.
    fn answer_len(&self, _entry: &SegmentEntry) -> Option<usize> {
        None
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
        let Request { head, key, body, chosen, .. } = request;
        let queries = scan.read(head.count, key, body)?;
        let length = payload_len(scan, head.count, &chosen);
        let mut writer =
            ResponseWriter::new(spec, &head, &KeysName::default(), 0, length.unwrap_or_default());
        writer.segments(chosen.len() as u32);
        Ok(Pending::starting(head.count, queries, chosen, writer))
    }

    /// As [`Self::new`], of an answer that is sent piece by piece, whose length is known.
    fn in_pieces<S: Scan<Queries = Q>>(
        scan: &S,
        spec: &IndexSpec,
        request: Request<'a>,
    ) -> Result<Self> {
        let Request { head, key, body, chosen, .. } = request;
        let queries = scan.read(head.count, key, body)?;
        let length = payload_len(scan, head.count, &chosen).unwrap_or_default();
        let mut writer = ResponseWriter::in_pieces(
            spec,
            &head,
            scan.response_key(),
            &KeysName::default(),
            0,
            length,
        );
        writer.segments(chosen.len() as u32);
        Ok(Pending::starting(head.count, queries, chosen, writer))
    }

    fn starting(count: u32, queries: Q, chosen: Vec<Chosen<'a>>, writer: ResponseWriter) -> Self {
        let mut chosen = chosen.into_iter();
        let next = chosen.next();
        Pending { count, queries, chosen, next, writer }
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

/// Bytes of a whole answer after its header, where they are known beforehand.
fn payload_len<S: Scan>(scan: &S, count: u32, chosen: &[Chosen<'_>]) -> Option<usize> {
    let answer = |entry| Some(count as usize * scan.answer_len(entry)?);
    let parts = chosen.iter().map(|(entry, rows)| Some((rows.as_deref(), answer(entry)?)));
    Some(response_len(0, parts.collect::<Option<Vec<_>>>()?.into_iter()))
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
    let mut good: Vec<_> = asked.iter_mut().flatten().collect();
    let wanted = about(&good, rows);
    pass(scan, &mut good, &wanted, rows)?;
    let timings = ServerTimings { expand, scan: start.seconds() - expand, respond: 0.0 };
    let finish = |asked: Pending<'_, S::Queries>| {
        let start = Stopwatch::start();
        let bytes = asked.writer.finish(spec, scan.response_key());
        let respond = start.seconds();
        Evaluation { bytes, timings: ServerTimings { respond, ..timings } }
    };
    Ok(asked.into_iter().map(|asked| asked.map(finish)).collect())
}

/// Answers one request piece by piece: all of its queries about some segments at once.
///
/// # Errors
/// A request that is refused, a segment that could not be read.
pub fn scan_into<S: Scan>(
    scan: &S,
    spec: &IndexSpec,
    request: Request<'_>,
    rows: &dyn SegmentReader,
    sink: &mut Sink<'_>,
) -> Result<ServerTimings> {
    let start = Stopwatch::start();
    let mut asked = Pending::in_pieces(scan, spec, request)?;
    let expand = start.seconds();
    let mut timings = ServerTimings { expand, ..ServerTimings::default() };
    let queries = asked.count as usize;
    while (sink.write)(&asked.writer.piece()) {
        let lengths = asked.about().map(|one| queries * scan.answer_len(one).unwrap_or_default());
        let piece = next_piece(lengths);
        let wanted: Vec<&SegmentEntry> = asked.about().take(piece).collect();
        if wanted.is_empty() {
            break;
        }
        let start = Stopwatch::start();
        sink.work(|| pass(scan, &mut [&mut asked], &wanted, rows))?;
        timings.scan += start.seconds();
    }
    Ok(timings)
}

/// The segments that some request is about, in their order.
fn about<'a, Q>(
    asked: &[&mut Pending<'a, Q>],
    rows: &'a dyn SegmentReader,
) -> Vec<&'a SegmentEntry> {
    if let [alone] = asked {
        return alone.about().collect();
    }
    let ids = asked.iter().flat_map(|asked| asked.about().map(|entry| entry.head.id.0));
    let ids: HashSet<[u8; 16]> = ids.collect();
    let every = rows.entries().iter().map(AsRef::as_ref);
    every.filter(|entry| ids.contains(&entry.head.id.0)).collect()
}

fn pass<'a, S: Scan>(
    scan: &S,
    asked: &mut [&mut Pending<'a, S::Queries>],
    wanted: &[&SegmentEntry],
    rows: &dyn SegmentReader,
) -> Result<()> {
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
