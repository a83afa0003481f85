//! Errors of this crate: each says what was expected, what came and what to do.

use crate::protect::error::{EnvelopeError, KeyfileError, PhraseError, ShareError};
use crate::protect::id::Id;
use crate::refusal::Refusal;

/// The result type of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// An error of the search pipeline.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of the scheme or its wire format.
    #[error(transparent)]
    Scheme(#[from] ciphervec_he::Error),
    /// Shared keys that somebody else may open.
    #[error(
        "these keys are not shared with {name}, but with {recipients}; ask whoever has them to share them with you"
    )]
    NotShared {
        /// Who tried.
        name: String,
        /// Who may.
        recipients: String,
    },
    /// Words that are no recovery phrase.
    #[error(transparent)]
    Phrase(#[from] PhraseError),
    /// A name outside its list.
    #[error("{what} must be {expected}, got {actual:?}")]
    Choice {
        /// The parameter.
        what: &'static str,
        /// Its allowed values.
        expected: &'static str,
        /// What came.
        actual: String,
    },
    /// A scheme that cannot do what the mode promises.
    #[error(
        "scheme {scheme:?} compares encrypted vectors with plain queries: mode must be \
         sealed-index, got {mode:?}. Take mode sealed-index if the server may see the queries, \
         or scheme lattice to encrypt them too"
    )]
    SchemeMode {
        /// The scheme.
        scheme: &'static str,
        /// The mode.
        mode: &'static str,
    },
    /// A number outside its range.
    #[error("{what} must be {expected}, got {actual}")]
    Range {
        /// The parameter.
        what: &'static str,
        /// Its allowed range.
        expected: String,
        /// What came.
        actual: String,
    },
    /// Rows of the wrong length.
    #[error("vectors of dimension {expected} expected, got {actual} numbers in {rows} rows")]
    Dimension {
        /// The index's dimension.
        expected: usize,
        /// Numbers given.
        actual: usize,
        /// Rows given.
        rows: usize,
    },
    /// A coordinate that cannot be compared.
    #[error("row {row}, coordinate {coordinate}: {expected} expected, got {actual}")]
    Coordinate {
        /// The row.
        row: usize,
        /// The coordinate.
        coordinate: usize,
        /// What was expected.
        expected: &'static str,
        /// What came.
        actual: f32,
    },
    /// A vector without a direction.
    #[error(
        "row {row} is a zero vector, which has no direction under the metric {metric}; leave it out or use l2"
    )]
    ZeroVector {
        /// The row.
        row: usize,
        /// The metric.
        metric: &'static str,
    },
    /// Encrypted vectors that an operation cannot take.
    #[error("{operation}: {detail}")]
    CkksSimilarity {
        /// The operation.
        operation: &'static str,
        /// What was expected, what came, and what to do.
        detail: String,
    },
    /// A lookup that the tables or the tokens do not allow.
    #[error("{operation}: {detail}")]
    Lookup {
        /// The operation.
        operation: &'static str,
        /// What was expected, what came, and what to do.
        detail: String,
    },
    /// A program's input, output, plan or keys that do not fit.
    #[error("{operation}: {detail}")]
    Program {
        /// The operation.
        operation: &'static str,
        /// What was expected, what came, and what to do.
        detail: String,
    },
    /// A circuit that cannot be, or cannot be under parameters.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An output of a program that no result can be.
    #[error("an output: {output:?}: {detail}")]
    Unclear {
        /// The output.
        output: String,
        /// What was expected, what came, and why that may be.
        detail: String,
    },
    /// As many ids as rows are needed.
    #[error("{rows} vectors came with {ids} ids; give one id a vector")]
    IdCount {
        /// Rows given.
        rows: usize,
        /// Ids given.
        ids: usize,
    },
    /// An id that is there already.
    #[error("id {0} exists already; use upsert to replace it")]
    DuplicateId(Id),
    /// A key that two records of a keyed table have.
    #[error("records {first} and {second} have the same key; a table has one record a key")]
    KeyTwice {
        /// The first of them, counted from 0.
        first: usize,
        /// The other one.
        second: usize,
    },
    /// An id outside its limits.
    #[error(transparent)]
    Id(#[from] crate::protect::id::IdError),
    /// The bytes belong to another index.
    #[error("{what} belongs to another index than this one (index {expected}, found {actual})")]
    OtherIndex {
        /// The object.
        what: &'static str,
        /// The index held.
        expected: String,
        /// The index named.
        actual: String,
    },
    /// The server has not been given the keys it needs.
    #[error(
        "the server has no evaluation keys of epoch {epoch}; send it keys.evaluation(...) first"
    )]
    NoEvaluationKeys {
        /// The epoch the query was made for.
        epoch: u32,
    },
    /// The server has not been given the public key of an additively homomorphic scheme.
    #[error("the server has no public key; send it owner.evaluation() first")]
    NoPublicKey,
    /// The owner has no key pair of an additively homomorphic scheme.
    #[error("the index has a key pair of its own; generate it, or open the sealed one, first")]
    NoKeyPair,
    /// An owner holds one key pair, and that one is what its segments are encrypted under.
    #[error("the owner holds a key pair already; another one takes another owner")]
    KeyPairHeld,
    /// The answer covers other segments than the owner knows of.
    #[error(
        "the answer and the segment directory disagree about segment {segment}: {detail}; reload the sidecars and ask again"
    )]
    Directory {
        /// The segment.
        segment: String,
        /// How they disagree.
        detail: String,
    },
    /// A writer's segment that its owner has taken in or discarded before.
    #[error("segment {segment} does not count: {detail}")]
    Consumed {
        /// The segment.
        segment: String,
        /// How that is known, and what to do.
        detail: String,
    },
    /// Tokens that a query, or its answer, does not go with.
    #[error("these tokens can't be used: {detail}. Ask again without them, and fetch others")]
    Token {
        /// Why.
        detail: String,
    },
    /// An answer that cannot be what the segments' own words give to the query. Nothing of it was returned.
    #[error(
        "the answer about segment {} was not computed from what was sealed there: the server, or whatever lies between, \
         changed the segment or the answer. Nothing was returned. Find out what happened before the segment is used again",
        names(segments)
    )]
    Tampered {
        /// The segments that failed their check.
        segments: Vec<ciphervec_he::lattice::SegmentId>,
    },
    /// An answer that does not belong to the query that somebody else made.
    #[error(
        "the answer is not one to this query: segment {} fails its check. Nothing was returned. Either the device sent \
         the server another query, or the answer was changed",
        names(segments)
    )]
    Mismatched {
        /// The segments that failed their check.
        segments: Vec<ciphervec_he::lattice::SegmentId>,
    },
    /// A record of private fetch that is not what its owner sealed.
    #[error(
        "private fetch has ended: a record is not what was sealed or published for its place. Nothing was returned and \
         nothing more is asked for, as a second try would show the server which record it is. Compare the table with the \
         copy of its owner or publisher, and make it anew"
    )]
    FetchEnded,
    /// A segment that failed its check before.
    #[error(
        "segment {0} is in quarantine: an answer about it failed its check. Find out what happened, then release it, or \
         restore it from a copy"
    )]
    Quarantined(ciphervec_he::lattice::SegmentId),
    /// A segment that is held already.
    #[error("segment {0} is already in the index; a retry must not add it twice")]
    DuplicateSegment(String),
    /// A segment whose rows cannot be read from where they are stored.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    /// An envelope that does not open.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// A key file that cannot be used.
    #[error(transparent)]
    Keyfile(#[from] KeyfileError),
    /// A key that cannot be split, or shares that give none.
    #[error(transparent)]
    Share(#[from] ShareError),
}

impl Error {
    #[doc(hidden)]
    pub fn choice(what: &'static str, expected: &'static str, actual: &str) -> Self {
        Error::Choice { what, expected, actual: actual.to_owned() }
    }
}

fn names(segments: &[ciphervec_he::lattice::SegmentId]) -> String {
    segments.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Names as a sentence lists them: "a, b or c".
pub(crate) fn alternatives(names: impl IntoIterator<Item = &'static str>) -> String {
    let mut names: Vec<_> = names.into_iter().collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last.to_owned() } else { format!("{} or {last}", names.join(", ")) }
}

impl From<ciphervec_arith::ArithError> for Error {
    fn from(error: ciphervec_arith::ArithError) -> Self {
        Error::Scheme(error.into())
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal,
            Error::Scheme(ciphervec_he::Error::TooFine { levels }) => Refusal::TooFine { levels },
            Error::Scheme(ciphervec_he::Error::TooNoisy { off, most }) => {
                Refusal::TooNoisy { off, most }
            }
            other => Refusal::Unfit(other.to_string()),
        }
    }
}

impl From<ciphervec_he::Error> for Refusal {
    fn from(error: ciphervec_he::Error) -> Self {
        Error::from(error).into()
    }
}
