//! Queries: float rows enter; bytes for the server leave, and what opening their answer takes stays. Owner only.

use super::centre;
use super::directory::SegmentDirectory;
use super::form::{AnswerFormat, Kept, MaskSeed};
use super::message::{QueryHead, WordsAsked};
use super::owner::Owner;
use super::quantize::check;
use super::stopwatch::Stopwatch;
use super::token::Token;
use crate::error::{Error, Result};
use crate::index::spec::MAX_QUERIES;
use crate::protect::filter::FilterTag;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::lattice::ring::Half;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

/// A batch of queries, ready to send. `Debug` shows sizes only.
pub struct Query {
    pub(super) bytes: Vec<u8>,
    pub(super) norms: Vec<f64>,
    /// What was taken off its rows; empty where that is nothing.
    pub(super) centre: Vec<f32>,
    pub(super) filtered: bool,
    /// The segments it names; `None` where it is about all of them.
    pub(super) segments: Option<Vec<SegmentId>>,
    /// The words that the answer is wanted in.
    pub(super) words: Option<WordsAsked>,
    /// The other halves of its answers, fetched before; none where all of an answer is asked for.
    pub(super) ahead: Vec<Token>,
    /// What the form opens the answer with.
    pub(super) kept: Kept,
    pub(super) seconds: f64,
    /// Made by somebody else, whose answers are not believed either.
    pub(super) foreign: bool,
    /// The rows that its filter chooses, segment by segment, where the owner knows.
    pub(super) matching: Matching,
}

/// Which rows of each segment a filter chooses.
pub(super) type Matching = OnceLock<HashMap<SegmentId, Vec<bool>>>;

impl core::fmt::Debug for Query {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Query({} queries, {} bytes)", self.norms.len(), self.bytes.len())
    }
}

impl Query {
    /// What the server gets.
    pub fn to_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Says which rows the filter chooses by the owner's own tags, for every segment: an answer about others is none, and is
    /// refused before it is known which of them would have been hits. Only the first word counts.
    pub fn expect_matching(&self, rows: impl IntoIterator<Item = (SegmentId, Vec<bool>)>) {
        self.matching.get_or_init(|| rows.into_iter().collect());
    }

    /// Queries in the batch.
    pub fn len(&self) -> usize {
        self.norms.len()
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.norms.is_empty()
    }

    /// Bytes of the halves of its answers that were fetched ahead; zero where it is answered whole.
    pub fn ahead(&self) -> usize {
        self.ahead.iter().map(Token::byte_len).sum()
    }

    /// Says that the rows it was made of were taken less this centre: an answer with rows of segments around another one, that
    /// a selection does not leave out, is refused.
    #[must_use]
    pub fn around(mut self, centre: Vec<f32>) -> Self {
        self.centre = centre;
        self
    }

    /// The segments it names; `None` where it is about all of them.
    pub fn segments(&self) -> Option<&[SegmentId]> {
        self.segments.as_deref()
    }

    /// Seconds it took to build.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}

impl Owner {
    /// Queries less the centre, as [`Query::around`] expects that a query was made of. An empty centre is the origin.
    ///
    /// # Errors
    /// A centre of another length than the index's dimension, with numbers that are not finite, or under another metric than
    /// `l2`.
    pub fn less_centre<'a>(&self, rows: &'a [f32], centre: &[f32]) -> Result<Cow<'a, [f32]>> {
        centre::less(self.spec(), rows, centre)
    }

    /// Builds queries from rows (row-major) for an index of which `directory` knows every segment. `tags` restrict the
    /// answer to records that carry all of them.
    ///
    /// # Errors
    /// Rows that fail the checks, more than [`MAX_QUERIES`] of them, no randomness.
    pub fn query(
        &self,
        rows: &[f32],
        directory: &SegmentDirectory,
        epoch: u32,
        tags: &[FilterTag],
    ) -> Result<Query> {
        self.query_for(rows, directory, epoch, tags, AnswerFormat::default())
    }

    /// As [`Self::query`], for a server that may not know the newest answers, or results that are the owner's alone.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn query_for(
        &self,
        rows: &[f32],
        directory: &SegmentDirectory,
        epoch: u32,
        tags: &[FilterTag],
        format: AnswerFormat,
    ) -> Result<Query> {
        self.query_with(rows, directory, epoch, tags, None, format)
    }

    /// As [`Self::query`], about `segments` alone where they are given: the server scores no others, and sees which they are.
    ///
    /// # Errors
    /// As [`Self::query`]; a segment that the directory does not know, or that is given twice.
    pub fn query_among(
        &self,
        rows: &[f32],
        directory: &SegmentDirectory,
        epoch: u32,
        tags: &[FilterTag],
        segments: Option<&[SegmentId]>,
    ) -> Result<Query> {
        self.query_with(rows, directory, epoch, tags, segments, AnswerFormat::default())
    }

    /// As [`Self::query_among`] and [`Self::query_for`].
    ///
    /// # Errors
    /// As [`Self::query_among`].
    pub fn query_with(
        &self,
        rows: &[f32],
        directory: &SegmentDirectory,
        epoch: u32,
        tags: &[FilterTag],
        segments: Option<&[SegmentId]>,
        format: AnswerFormat,
    ) -> Result<Query> {
        self.query_under(rows, directory, epoch, tags, segments, format, Vec::new())
    }

    /// As [`Self::query_with`], under the masks of as many `tokens` as there are rows, where there are any. They are used up,
    /// whatever comes of it.
    #[expect(clippy::too_many_arguments, reason = "those of a query, and the tokens")]
    pub(super) fn query_under(
        &self,
        rows: &[f32],
        directory: &SegmentDirectory,
        epoch: u32,
        tags: &[FilterTag],
        segments: Option<&[SegmentId]>,
        format: AnswerFormat,
        tokens: Vec<Token>,
    ) -> Result<Query> {
        let start = Stopwatch::start();
        let checked = check(self.spec(), rows)?;
        let count = u32::try_from(checked.len()).unwrap_or(u32::MAX);
        if count > MAX_QUERIES {
            return Err(Error::Range {
                what: "queries in one batch",
                expected: format!("at most {MAX_QUERIES}"),
                actual: checked.len().to_string(),
            });
        }
        let mut seen = HashSet::new();
        for segment in segments.unwrap_or_default() {
            if directory.entry(*segment).is_none() || !seen.insert(segment.0) {
                let detail = "a query names segments that the directory knows, each once";
                return Err(Error::Directory {
                    segment: segment.to_string(),
                    detail: detail.to_owned(),
                });
            }
        }
        let top_level = directory.top_level();
        let encoded = match self.form().masked_queries() {
            Some(form) if !tokens.is_empty() => {
                let masks: Vec<MaskSeed> = tokens.iter().map(Token::mask).collect();
                form.encode_masked(self.root(), &checked, top_level, epoch, format, &masks)?
            }
            _ => self.form().encode_queries(self.root(), &checked, top_level, epoch, format)?,
        };
        let half = (!tokens.is_empty()).then_some(Half::Constant);
        let segments = segments.map(<[SegmentId]>::to_vec);
        let (tags, words) = (tags.to_vec(), encoded.words);
        let head = QueryHead { count, top_level, epoch, tags, segments, words, half };
        let bytes = head.frame(self.spec(), encoded.key, &encoded.body);
        Ok(Query {
            bytes,
            norms: checked.norms,
            centre: Vec::new(),
            filtered: !head.tags.is_empty(),
            segments: head.segments,
            words: head.words,
            ahead: tokens,
            kept: encoded.kept,
            seconds: start.seconds(),
            foreign: false,
            matching: Matching::new(),
        })
    }
}
