//! Tokens: halves of answers, fetched ahead by the seeds of their masks and kept for one query each. Owner only.
//!
//! Two queries under one mask give away their difference, so that a token must serve once, whatever happens. No file can
//! promise that, as it may be copied or restored; so there is none. A token can't be cloned or written down: it lives in the
//! memory of the process that drew its seed, moves into the query that uses it, and is refused after a fork.

use super::answer_parts::{AnswerParts, no_halves};
use super::directory::SegmentDirectory;
use super::form::{AnswerFormat, MaskSeed, expect_key};
use super::message::{KeysName, QueryHead, WordsAsked};
use super::owner::Owner;
use crate::error::{Error, Result};
use crate::index::spec::MAX_QUERIES;
use ciphervec_he_secret::keys::random_bytes;
use ciphervec_he_secret::lattice::ring::Half;
use ciphervec_he_secret::process;
use ciphervec_he_secret::wire::KeyId;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zeroize::Zeroizing;

const WHAT: &str = "a response";

/// What the other halves of some answers were computed from, beside each one's mask.
struct Bound {
    index: [u8; 8],
    key: KeyId,
    epoch: u32,
    top_level: u8,
    words: WordsAsked,
    /// The evaluation keys that the server says it took.
    keys: KeysName,
    segments: HashMap<[u8; 16], BoundSegment>,
}

struct BoundSegment {
    rows: usize,
    level: u8,
    /// Where a token has its half of the answer.
    at: Range<usize>,
}

/// Half of the answer to one query that is not known yet, and the mask it will have.
pub struct Token {
    seed: Zeroizing<MaskSeed>,
    process: u32,
    bound: Arc<Bound>,
    halves: Vec<u8>,
}

impl core::fmt::Debug for Token {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Token({} bytes)", self.halves.len())
    }
}

impl Token {
    pub(super) fn mask(&self) -> MaskSeed {
        *self.seed
    }

    /// Whether this is the process that drew it.
    pub(super) fn is_own(&self) -> bool {
        self.process == process::id()
    }

    /// Whether a query to the segments of `directory`, answered in these words, could use it.
    pub(super) fn suits(
        &self,
        owner: &Owner,
        directory: &SegmentDirectory,
        epoch: u32,
        words: Option<&WordsAsked>,
    ) -> bool {
        Some(&self.bound.words) == words && self.bound.suits(owner, directory, epoch)
    }

    /// The evaluation keys that its half was made with.
    pub(super) fn keys(&self) -> &KeysName {
        &self.bound.keys
    }

    /// Its half of the answer over a segment of so many rows at this level.
    pub(super) fn segment(&self, id: [u8; 16], rows: usize, level: u8) -> Option<&[u8]> {
        let bound = self.bound.segments.get(&id)?;
        ((bound.rows, bound.level) == (rows, level)).then(|| &self.halves[bound.at.clone()])
    }

    /// Bytes of the half of an answer that it holds.
    pub fn byte_len(&self) -> usize {
        self.halves.len()
    }
}

impl Bound {
    /// Whether a query to the segments of `directory` could use what is bound to this.
    fn suits(&self, owner: &Owner, directory: &SegmentDirectory, epoch: u32) -> bool {
        let present = (owner.spec().id(), owner.key_id(), epoch, directory.top_level());
        (self.index, self.key, self.epoch, self.top_level) == present
            && directory.entries().iter().all(|entry| {
                let sidecar = &entry.sidecar;
                self.segments.get(&entry.id.0).is_some_and(|bound| {
                    (bound.rows, bound.level) == (sidecar.rows as usize, sidecar.level)
                })
            })
    }
}

/// Seeds that were drawn, and what the server is to be sent about them.
pub struct TokenRequest {
    bytes: Vec<u8>,
    head: QueryHead,
    seeds: Vec<Zeroizing<MaskSeed>>,
    process: u32,
}

impl core::fmt::Debug for TokenRequest {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "TokenRequest({} tokens, {} bytes)", self.seeds.len(), self.bytes.len())
    }
}

impl TokenRequest {
    /// What the server gets: it tells nothing of queries to come.
    pub fn to_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Owner {
    /// Draws the masks of `count` queries over the segments that `directory` knows, whose answers will come in this format.
    ///
    /// # Errors
    /// [`Error::Choice`] for a mode whose answers have no such half, or a format of version 1; no tokens or more than
    /// [`MAX_QUERIES`]; no randomness.
    pub fn request_tokens(
        &self,
        count: usize,
        directory: &SegmentDirectory,
        epoch: u32,
        format: AnswerFormat,
    ) -> Result<TokenRequest> {
        let form = self.form().masked_queries().ok_or_else(|| no_halves(self.spec()))?;
        let number = u32::try_from(count).ok().filter(|count| (1..=MAX_QUERIES).contains(count));
        let count = number.ok_or_else(|| Error::Range {
            what: "tokens at once",
            expected: format!("1 to {MAX_QUERIES}"),
            actual: count.to_string(),
        })?;
        let top_level = directory.top_level();
        let Some(words) = form.words(top_level, format)? else {
            let known = "precise or brief: answers of the first version come whole";
            return Err(Error::choice("the format of the answers", known, "first"));
        };
        let seeds = (0..count).map(|_| Ok(Zeroizing::new(random_bytes::<32>()?)));
        let seeds = seeds.collect::<Result<Vec<_>>>()?;
        let head = QueryHead {
            count,
            top_level,
            epoch,
            tags: Vec::new(),
            segments: None,
            words: Some(words),
            half: Some(Half::Linear),
            fold: None,
        };
        let body: Vec<u8> = seeds.iter().flat_map(|seed| **seed).collect();
        let bytes = head.frame(self.spec(), self.key_id(), &body);
        Ok(TokenRequest { bytes, head, seeds, process: process::id() })
    }

    /// Makes tokens of the server's answer.
    ///
    /// # Errors
    /// Damaged or foreign bytes; [`Error::Directory`] for an answer about other segments than the directory knows.
    pub fn read_tokens(
        &self,
        request: TokenRequest,
        answer: &[u8],
        directory: &SegmentDirectory,
    ) -> Result<Vec<Token>> {
        let TokenRequest { head, seeds, process, .. } = request;
        let parts = AnswerParts::read(self.spec(), &head, answer)?;
        expect_key(WHAT, self.form().response_key(self.root())?, parts.key)?;
        let (mut segments, mut length) = (HashMap::new(), 0);
        let mut place = |bytes: usize| {
            let start = length;
            length += bytes / seeds.len();
            start..length
        };
        for part in &parts.segments {
            let at = place(part.answers.len());
            let bound = BoundSegment { rows: part.rows, level: part.level, at };
            if part.filtered || segments.insert(part.id.0, bound).is_some() {
                let detail = "whole and once was expected".to_owned();
                return Err(Error::Directory { segment: part.id.to_string(), detail });
            }
        }
        let (Some(words), key) = (head.words, self.key_id()) else {
            return Err(no_halves(self.spec()));
        };
        let (index, keys) = (self.spec().id(), parts.keys);
        let (epoch, top_level) = (head.epoch, head.top_level);
        let bound = Bound { index, key, epoch, top_level, words, keys, segments };
        if !bound.suits(self, directory, epoch) {
            let missing = directory.entries().iter().map(|entry| entry.id);
            let missing = missing.filter(|id| !bound.segments.contains_key(&id.0));
            let segment = missing.map(|id| id.to_string()).next().unwrap_or_default();
            let detail = "the segments have changed since tokens were asked for".to_owned();
            return Err(Error::Directory { segment, detail });
        }
        let bound = Arc::new(bound);
        let all = || parts.segments.iter().map(|part| part.answers);
        let count = seeds.len();
        let tokens = seeds.into_iter().enumerate().map(|(query, seed)| {
            let mut halves = Vec::with_capacity(length);
            for bytes in all() {
                let one = bytes.len() / count;
                halves.extend_from_slice(&bytes[query * one..][..one]);
            }
            Token { seed, process, bound: Arc::clone(&bound), halves }
        });
        Ok(tokens.collect())
    }

    /// Takes tokens for `count` queries out of the pool, for which they are used up. `None` if it has too few that suit the
    /// segments of `directory`; those that never will again are gone.
    ///
    /// # Errors
    /// A mode without tokens.
    pub fn take_tokens(
        &self,
        pool: &TokenPool,
        count: usize,
        directory: &SegmentDirectory,
        epoch: u32,
        format: AnswerFormat,
    ) -> Result<Option<Vec<Token>>> {
        let form = self.form().masked_queries().ok_or_else(|| no_halves(self.spec()))?;
        let words = form.words(directory.top_level(), format)?;
        let mut held = pool.held();
        let mut last: Option<(*const Bound, bool)> = None;
        held.retain(|token| {
            let bound = Arc::as_ptr(&token.bound);
            let suits = match last {
                Some((known, suits)) if known == bound => suits,
                _ => token.bound.suits(self, directory, epoch),
            };
            last = Some((bound, suits));
            suits && token.is_own()
        });
        if count == 0 || held.len() < count || words.is_none() {
            return Ok(None);
        }
        let asked = |token: &Token| Some(&token.bound.words) == words.as_ref();
        let left = held.len() - count;
        // Keys are the same unless the server was given others between two fetches.
        let keys = *held[left].keys();
        if !held[left..].iter().all(|token| asked(token) && *token.keys() == keys) {
            return Ok(None);
        }
        Ok(Some(held.split_off(left)))
    }
}

/// Tokens that wait for queries, of one index. Threads may share it: each token is given once.
#[derive(Default)]
pub struct TokenPool(Mutex<Vec<Token>>);

impl core::fmt::Debug for TokenPool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "TokenPool({} tokens)", self.len())
    }
}

impl TokenPool {
    fn held(&self) -> MutexGuard<'_, Vec<Token>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts more tokens in.
    pub fn add(&self, tokens: Vec<Token>) {
        self.held().extend(tokens);
    }

    /// Tokens held, some of which may be out of date.
    pub fn len(&self) -> usize {
        self.held().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.held().is_empty()
    }

    /// Bytes of the halves of answers held.
    pub fn byte_len(&self) -> usize {
        self.held().iter().map(Token::byte_len).sum()
    }

    /// Throws all tokens away.
    pub fn clear(&self) {
        self.held().clear();
    }
}
