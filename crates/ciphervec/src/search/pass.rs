//! Queries that waited together enter, their answers leave: one pass over memory for all of them. Server only.
//!
//! A scan is bound by memory bandwidth, so that sixteen queries in one pass take little longer than one. Answers are, bit for
//! bit, those that each query would have got alone, and a query that is refused is refused alone.

use super::evaluate::{Evaluation, ServerTimings, inner_product};
use super::held::{Chosen, Held};
use super::index::ServerIndex;
use crate::Mode;
use crate::error::Result;
use crate::message::{QueryHead, ResponseWriter, read_floats, read_integers};
use ciphervec_he::wire::KeyId;
use std::collections::HashSet;
use std::time::Instant;

/// Numbers of a query, as its mode has them.
enum Numbers {
    Plain(Vec<f32>),
    Integers(Vec<i64>),
}

/// One query of the pass, and its answer as far as it has come.
struct Asked<'a> {
    count: u32,
    numbers: Numbers,
    chosen: std::vec::IntoIter<Chosen<'a>>,
    next: Option<Chosen<'a>>,
    writer: ResponseWriter,
}

impl<'a> Asked<'a> {
    fn parse(index: &'a ServerIndex, query: &[u8]) -> Result<Self> {
        let spec = index.spec();
        let (head, _, reader) = QueryHead::open(spec, query)?;
        let numbers = match spec.mode() {
            Mode::Open => Numbers::Plain(read_floats(spec, head.count, reader)?),
            _ => Numbers::Integers(read_integers(spec, head.count, reader)?),
        };
        let chosen = index.choose(&head.tags);
        let capacity = index.capacity(&head, &chosen)?;
        let mut writer = ResponseWriter::new(spec, head.count, 0, capacity);
        writer.segments(chosen.len() as u32);
        let mut chosen = chosen.into_iter();
        let next = chosen.next();
        Ok(Asked { count: head.count, numbers, chosen, next, writer })
    }

    /// The segments that this query is about and that have not come yet.
    fn about(&self) -> impl Iterator<Item = [u8; 16]> {
        self.next.iter().chain(self.chosen.as_slice()).map(|(held, _)| held.head.id.0)
    }

    /// Whether this query is about the segment; if so, its head has been written.
    fn begins(&mut self, held: &Held) -> bool {
        let Some((_, matching)) = self.next.take_if(|(next, _)| std::ptr::eq(*next, held)) else {
            return false;
        };
        self.writer.segment(held.head.id, held.head.rows, 0, matching.as_deref());
        self.next = self.chosen.next();
        true
    }
}

impl ServerIndex {
    /// Answers queries that came together, each as [`ServerIndex::evaluate`] would. Modes whose queries are plain share one
    /// pass over the segments.
    pub fn evaluate_many(&self, queries: &[&[u8]]) -> Vec<Result<Evaluation>> {
        let shared = !self.spec().scheme().is_additive() && !self.spec().mode().encrypts_queries();
        if shared && queries.len() > 1 {
            let start = Instant::now();
            let mut asked: Vec<Result<Asked<'_>>> =
                queries.iter().map(|query| Asked::parse(self, query)).collect();
            let expand = start.elapsed().as_secs_f64();
            if self.pass(asked.iter_mut().flatten()).is_ok() {
                let timings = ServerTimings {
                    expand,
                    scan: start.elapsed().as_secs_f64() - expand,
                    respond: 0.0,
                };
                let finish = |asked: Asked<'_>| {
                    let bytes = asked.writer.finish(self.spec(), KeyId::default());
                    Evaluation { bytes, timings }
                };
                return asked.into_iter().map(|asked| asked.map(finish)).collect();
            }
            // A segment could not be read: each query finds out by itself, and says so to whoever asked.
        }
        queries.iter().map(|query| self.evaluate(query)).collect()
    }

    fn pass<'a, 'b: 'a>(&'b self, asked: impl Iterator<Item = &'a mut Asked<'b>>) -> Result<()> {
        let mut asked: Vec<&mut Asked<'b>> = asked.collect();
        let mut sums = Vec::new();
        let wanted: HashSet<[u8; 16]> = asked.iter().flat_map(|asked| asked.about()).collect();
        let wanted: Vec<&Held> =
            self.held().filter(|held| wanted.contains(&held.head.id.0)).collect();
        for (held, segment) in wanted.iter().zip(self.rows_of(wanted.iter().copied())) {
            let segment = segment?;
            let mut about: Vec<&mut &mut Asked<'b>> =
                asked.iter_mut().filter_map(|asked| asked.begins(held).then_some(asked)).collect();
            let (rows, dimension) = (held.head.rows as usize, self.spec().dimension());
            if self.spec().mode() == Mode::Open {
                for asked in about {
                    let Numbers::Plain(numbers) = &asked.numbers else { continue };
                    let body = asked.writer.body();
                    for query in numbers.chunks_exact(dimension) {
                        for row in segment.data().chunks_exact(dimension * 4) {
                            let score = inner_product(row, query);
                            body.extend_from_slice(&(score as f32).to_le_bytes());
                        }
                    }
                }
                continue;
            }
            let mut together = Vec::new();
            for asked in &about {
                if let Numbers::Integers(numbers) = &asked.numbers {
                    together.extend_from_slice(numbers);
                }
            }
            sums.clear();
            let form = self.spec().precision().form();
            segment.scan(self.spec(), &together, &mut sums);
            let mut rest = sums.as_slice();
            for asked in &mut about {
                let (own, others) = rest.split_at(asked.count as usize * rows * form.word_bytes());
                asked.writer.body().extend_from_slice(own);
                rest = others;
            }
        }
        Ok(())
    }
}
