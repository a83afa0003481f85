//! Answers queries over every segment or over those that they name, for the server, which holds no key.

use super::answer_parts::answer_len;
use super::entry::{Chosen, SegmentReader};
use super::form::{
    self, Evaluation, Request, ServerHalf, ServerTimings, SessionKeys, Sink, TreeLender,
};
use super::index::ServerIndex;
use super::message::QueryHead;
use crate::error::{Error, Result};
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::lattice::ring::is_session;
use ciphervec_he::wire::{KeyId, Reader};
use std::collections::HashSet;

impl ServerIndex {
    /// Bytes of the answer to a query, nearly; zero under an additively homomorphic scheme, whose answers are short.
    ///
    /// # Errors
    /// As [`Self::evaluate`] for a query that does not parse.
    pub fn answer_len(&self, query: &[u8]) -> Result<u64> {
        let (head, _, _) = self.open_query(query)?;
        let mut bytes = 32;
        // Of the clusters that are folded as many are answered about as were chosen.
        let clusters: HashSet<[u8; 16]> = head.clusters().iter().map(|id| id.0).collect();
        let mut left = head.fold.map_or(0, |fold| fold.probes());
        for (entry, matching) in self.choose(&head) {
            if clusters.contains(&entry.head.id.0) {
                if left == 0 {
                    continue;
                }
                left -= 1;
            }
            let (rows, level) = (entry.head.rows as usize, entry.head.level);
            let answer = answer_len(self.spec(), &head, rows, level)?;
            let Some(answer) = answer else { return Ok(0) };
            bytes += 22 + matching.map_or(0, |rows| rows.len().div_ceil(8));
            bytes += head.count as usize * answer;
        }
        Ok(bytes as u64)
    }

    /// Bytes that answering a query takes beside the segments and the answer itself.
    ///
    /// # Errors
    /// As [`Self::evaluate`] for a query that does not parse.
    pub fn working_len(&self, query: &[u8]) -> Result<u64> {
        let (head, _, _) = self.open_query(query)?;
        let chosen = self.choose(&head);
        let mut levels: Vec<u8> = chosen.iter().map(|(entry, _)| entry.head.level).collect();
        levels.sort_unstable();
        levels.dedup();
        let trees = form::of(self.spec()).working_len(self.spec(), &levels, head.count as usize)?;
        Ok(trees as u64 + self.folds(&head, &chosen)?)
    }

    /// Those of them that folding clusters takes: as many as a stranger's query says that it chooses.
    ///
    /// # Errors
    /// As [`Self::evaluate`] for a query that does not parse.
    pub fn fold_len(&self, query: &[u8]) -> Result<u64> {
        let (head, _, _) = self.open_query(query)?;
        if head.fold.is_none() {
            return Ok(0);
        }
        self.folds(&head, &self.choose(&head))
    }

    fn folds(&self, head: &QueryHead, chosen: &[Chosen<'_>]) -> Result<u64> {
        let (Some(fold), Some(first)) = (head.fold, head.clusters().first()) else { return Ok(0) };
        let cluster = chosen.iter().find(|(entry, _)| entry.head.id == *first);
        let length = |(entry, _): &Chosen<'_>| {
            let (rows, level) = (entry.head.rows as usize, entry.head.level);
            form::of(self.spec()).fold_len(self.spec(), rows, level, &fold)
        };
        Ok(cluster.map_or(Ok(0), length)? as u64)
    }

    /// Answers a batch of queries over every segment, or those that it names.
    ///
    /// # Errors
    /// Damaged or foreign bytes, missing evaluation keys, a query that serves a shallower tree than a segment needs.
    pub fn evaluate(&self, query: &[u8]) -> Result<Evaluation> {
        self.evaluate_by(self.form(), query, None)
    }

    /// As [`Self::evaluate`], for a query whose key holder is in this process (`Owner::lender`).
    ///
    /// # Errors
    /// As [`Self::evaluate`].
    pub fn evaluate_beside(
        &self,
        query: &[u8],
        lender: Option<&dyn TreeLender>,
    ) -> Result<Evaluation> {
        self.evaluate_by(self.form(), query, lender)
    }

    /// The session whose evaluation keys a query says that it wants; `None` where there is none. Nothing of the query is
    /// checked.
    pub fn session_of(&self, query: &[u8]) -> Option<u32> {
        let has_sessions = form::of(self.spec()).has_levels();
        QueryHead::epoch_of(query).filter(|&epoch| has_sessions && is_session(epoch))
    }

    /// As [`Self::evaluate`], for a query of the session that these keys are of.
    ///
    /// # Errors
    /// As [`Self::evaluate`]; [`Error::NoEvaluationKeys`] also where the keys are not of the index's present owner.
    pub fn evaluate_with(&self, query: &[u8], keys: &SessionKeys) -> Result<Evaluation> {
        let missing = Error::NoEvaluationKeys { epoch: keys.epoch() };
        let form = self.form().with_session(keys).ok_or(missing)?;
        self.evaluate_by(form.as_ref(), query, None)
    }

    fn evaluate_by(
        &self,
        form: &dyn ServerHalf,
        query: &[u8],
        lender: Option<&dyn TreeLender>,
    ) -> Result<Evaluation> {
        let request = Request { lender, ..self.request(query)? };
        let answers = form.score(vec![request], self)?;
        // One request has one answer.
        answers.into_iter().collect::<Result<Vec<_>>>().map(|mut answers| answers.remove(0))
    }

    /// As [`Self::evaluate`], for an answer that is opened in this process while it is computed (`Owner::open_local`) and
    /// never in memory as a whole. It comes in pieces of a megabyte or a segment, without a checksum; as one piece where queries are more than can be expanded at once, or the scheme is
    /// additively homomorphic.
    ///
    /// # Errors
    /// As [`Self::evaluate`]. What was written by then is worth nothing.
    pub fn evaluate_into(
        &self,
        query: &[u8],
        lender: Option<&dyn TreeLender>,
        sink: &mut Sink<'_>,
    ) -> Result<ServerTimings> {
        let request = Request { lender, ..self.request(query)? };
        self.form().score_into(request, self, sink)
    }

    /// Answers queries that came together, each as [`ServerIndex::evaluate`] would. Modes whose queries are plain share one
    /// pass over the segments.
    pub fn evaluate_many(&self, queries: &[&[u8]]) -> Vec<Result<Evaluation>> {
        let alone = || queries.iter().map(|query| self.evaluate(query)).collect();
        if queries.len() < 2 {
            return alone();
        }
        let requests: Vec<Result<Request<'_>>> =
            queries.iter().map(|query| self.request(query)).collect();
        let mut refused = Vec::with_capacity(queries.len());
        let mut good = Vec::with_capacity(queries.len());
        for request in requests {
            match request {
                Ok(request) => {
                    good.push(request);
                    refused.push(None);
                }
                Err(error) => refused.push(Some(error)),
            }
        }
        // A segment that could not be read: each query finds out by itself, and says so to whoever asked.
        let Ok(answers) = self.form().score(good, self) else { return alone() };
        let mut answers = answers.into_iter();
        let in_order = refused.into_iter().filter_map(|refused| match refused {
            Some(error) => Some(Err(error)),
            None => answers.next(),
        });
        in_order.collect()
    }

    /// A query read as far as it is the same in every form.
    fn request<'a>(&'a self, query: &'a [u8]) -> Result<Request<'a>> {
        let (head, key, body) = self.open_query(query)?;
        let chosen = self.choose(&head);
        Ok(Request { head, key, body, chosen, lender: None })
    }

    /// The segments that a query is about: of those it names, or of all, those with a row that carries every tag, each with
    /// its matching rows. One that is named and not here is the asker's to miss: it may have gone meanwhile.
    fn choose(&self, head: &QueryHead) -> Vec<Chosen<'_>> {
        let named = head.segments.as_ref();
        let named = named.map(|ids| ids.iter().map(|id| id.0).collect::<HashSet<[u8; 16]>>());
        let is_named =
            |id: SegmentId| named.as_ref().is_none_or(|segments| segments.contains(&id.0));
        let every = self.entries().iter().filter(|entry| is_named(entry.head.id));
        every
            .filter_map(|entry| {
                if head.tags.is_empty() {
                    return Some((&**entry, None));
                }
                let matching = entry.tags.matches(&head.tags);
                matching.contains(&true).then_some((&**entry, Some(matching)))
            })
            .collect()
    }

    /// The head of a query, its key and its body.
    fn open_query<'a>(&self, query: &'a [u8]) -> Result<(QueryHead, KeyId, Reader<'a>)> {
        let (head, key, body) = QueryHead::open(self.spec(), query)?;
        let form = form::of(self.spec());
        if head.words.is_some() && !form.has_levels() {
            return Err(body.error("a query of this mode has version 1").into());
        }
        Ok((head, key, body))
    }
}
