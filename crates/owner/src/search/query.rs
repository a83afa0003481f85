//! A batch of queries: the bytes for the server, and the secrets that opening their answer takes. Owner only.

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
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::lattice::retrieval::ChoiceShape;
use ciphervec_he_secret::lattice::ring::Half;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

/// A batch of queries, ready to send. `Debug` shows sizes only.
pub struct Query {
    pub(super) bytes: Vec<u8>,
    pub(super) norms: Vec<f64>,
    /// What was taken off its rows; empty where that is nothing.
    pub(super) centre: Vec<f32>,
    pub(super) filtered: bool,
    /// The segments that it is answered about; `None` where that is all of them.
    pub(super) segments: Option<Vec<SegmentId>>,
    /// The clusters that its server is to answer about without knowing, in order; they are among the segments.
    pub(super) folded: Vec<SegmentId>,
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

/// What a query is made for, beside its rows.
#[derive(Debug, Default)]
pub struct QueryOptions<'a> {
    /// Of the query key.
    pub epoch: u32,
    /// Restrict the answer to records that carry all of these.
    pub tags: &'a [FilterTag],
    /// The only segments that the server scores, which sees which they are; `None` for all.
    pub segments: Option<&'a [SegmentId]>,
    /// What the answer comes in: a server may not know the newest.
    pub format: AnswerFormat,
    /// What the rows are taken less of, empty for nothing: an answer with rows of segments around another centre, that a
    /// selection does not leave out, is refused.
    pub centre: &'a [f32],
    /// One for each row: the query is made under their masks, and its answer is completed by [`Owner::complete`]. They are used
    /// up, also by a query that fails its checks.
    pub tokens: Option<Vec<Token>>,
    /// Clusters that the server scores, and answers about those that are chosen, without learning which; beside the segments.
    pub fold: Option<Fold<'a>>,
}

/// Most clusters that one query can have folded out of all.
pub const MAX_PROBES: usize = ChoiceShape::MAX_PROBES;

/// Segments of one shape, and those that one query is to be answered about.
#[derive(Clone, Copy, Debug)]
pub struct Fold<'a> {
    /// All of them. The server sees their order.
    pub clusters: &'a [SegmentId],
    /// Some, each once.
    pub chosen: &'a [SegmentId],
}

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

    /// The segments that it is answered about; `None` where that is all of them.
    pub fn segments(&self) -> Option<&[SegmentId]> {
        self.segments.as_deref()
    }

    /// Those of them that its server does not learn.
    pub fn folded(&self) -> &[SegmentId] {
        &self.folded
    }

    /// Seconds it took to build.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}

impl Owner {
    /// Builds queries from rows (row-major) for an index of which `directory` knows every segment.
    ///
    /// # Errors
    /// Rows that fail the checks, more than [`MAX_QUERIES`] of them, no randomness; a centre that is none of this index; a
    /// segment that the directory does not know, or that is given twice; [`Error::Token`] for another number of tokens than
    /// rows, or those of other segments, another format or another process.
    pub fn query(
        &self,
        rows: &[f32],
        directory: &SegmentDirectory,
        options: QueryOptions<'_>,
    ) -> Result<Query> {
        let QueryOptions { epoch, tags, segments, format, centre, tokens, fold } = options;
        let start = Stopwatch::start();
        if let Some(tokens) = &tokens {
            self.expect_tokens(tokens, rows, directory, epoch, format, segments)?;
        }
        let tokens = tokens.unwrap_or_default();
        let rows = centre::less(self.spec(), rows, centre)?;
        let checked = check(self.spec(), &rows)?;
        let count = u32::try_from(checked.len()).unwrap_or(u32::MAX);
        if count > MAX_QUERIES {
            return Err(Error::Range {
                what: "queries in one batch",
                expected: format!("at most {MAX_QUERIES}"),
                actual: checked.len().to_string(),
            });
        }
        let clusters = fold.map_or(&[][..], |fold| fold.clusters);
        let mut seen = HashSet::new();
        for segment in clusters.iter().chain(segments.unwrap_or_default()) {
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
        let (shape, choice) = match fold {
            Some(fold) => {
                let (shape, chosen) = self.fold_shape(&fold, directory, checked.len(), tags)?;
                let choice =
                    self.form().encode_choice(self.root(), &encoded.kept, &shape, &chosen)?;
                (Some(shape), choice)
            }
            None => (None, Vec::new()),
        };
        let half = (!tokens.is_empty()).then_some(Half::Constant);
        let unrouted = segments.unwrap_or_default();
        let named = segments.map(|_| [clusters, unrouted].concat());
        let folded = fold.map_or_else(Vec::new, |fold| fold.chosen.to_vec());
        let answered = segments.map(|_| [&folded, unrouted].concat());
        let (tags, words) = (tags.to_vec(), encoded.words);
        let head =
            QueryHead { count, top_level, epoch, tags, segments: named, words, half, fold: shape };
        let bytes = head.frame(self.spec(), encoded.key, &[encoded.body, choice].concat());
        Ok(Query {
            bytes,
            norms: checked.norms,
            centre: centre.to_vec(),
            filtered: !head.tags.is_empty(),
            segments: answered,
            folded,
            words: head.words,
            ahead: tokens,
            kept: encoded.kept,
            seconds: start.seconds(),
            foreign: false,
            matching: Matching::new(),
        })
    }

    /// How many clusters of how many are chosen, and which by number.
    fn fold_shape(
        &self,
        fold: &Fold<'_>,
        directory: &SegmentDirectory,
        queries: usize,
        tags: &[FilterTag],
    ) -> Result<(ChoiceShape, Vec<usize>)> {
        let range = |what, expected: &str, actual: String| {
            Err(Error::Range { what, expected: expected.to_owned(), actual })
        };
        if queries != 1 || !tags.is_empty() {
            let actual = format!("{queries} queries, {} tags", tags.len());
            return range("a query whose clusters are folded", "one, without filter tags", actual);
        }
        let of = |id: &SegmentId| {
            let entry = directory.entry(*id);
            entry.map(|entry| (entry.sidecar.rows, entry.sidecar.level))
        };
        if fold.clusters.windows(2).any(|two| of(&two[0]) != of(&two[1])) {
            return range(
                "clusters to fold",
                "of one number of rows and one level",
                "others".into(),
            );
        }
        let numbers = fold.clusters.iter().zip(0..).collect::<HashMap<&SegmentId, usize>>();
        let mut chosen = Vec::with_capacity(fold.chosen.len());
        for cluster in fold.chosen {
            match numbers.get(cluster) {
                Some(number) if !chosen.contains(number) => chosen.push(*number),
                _ => {
                    return range(
                        "a chosen cluster",
                        "one of the clusters, once",
                        cluster.to_string(),
                    );
                }
            }
        }
        let dimension = self.spec().dimension();
        Ok((ChoiceShape::new(dimension, fold.clusters.len(), chosen.len())?, chosen))
    }
}
