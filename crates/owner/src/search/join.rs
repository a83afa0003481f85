//! Queries with tokens: checks that the tokens fit, and joins the half of an answer that they hold with the server's. Owner
//! only.
//!
//! What comes out is, bit for bit, what the same query without tokens would have been answered with, and is opened as such.

use super::answer_parts::{AnswerParts, SegmentPart, no_halves};
use super::directory::SegmentDirectory;
use super::form::{self, AnswerFormat, expect_key};
use super::message::{KeysName, QueryHead, ResponseWriter};
use super::owner::Owner;
use super::query::Query;
use super::token::Token;
use crate::error::{Error, Result};
use ciphervec_he_secret::lattice::SegmentId;
use std::collections::HashSet;

impl Owner {
    /// Refuses tokens that a query can't be made under.
    pub(super) fn expect_tokens(
        &self,
        tokens: &[Token],
        rows: &[f32],
        directory: &SegmentDirectory,
        epoch: u32,
        format: AnswerFormat,
        segments: Option<&[SegmentId]>,
    ) -> Result<()> {
        let form = self.form().masked_queries().ok_or_else(|| no_halves(self.spec()))?;
        let words = form.words(directory.top_level(), format)?;
        let count = rows.len() / self.spec().dimension();
        let refused = |detail: String| Err(Error::Token { detail });
        if tokens.is_empty() || tokens.len() != count {
            return refused(format!("{count} queries came with {} tokens", tokens.len()));
        }
        if segments.is_some() {
            return refused("they are about all segments, and the query names some".into());
        }
        if !tokens.iter().all(Token::is_own) {
            return refused("they were fetched by the process that this one was forked off".into());
        }
        let words = words.as_ref();
        if !tokens.iter().all(|token| token.suits(self, directory, epoch, words)) {
            return refused("they were fetched for other segments, keys or answers".into());
        }
        Ok(())
    }

    /// The whole answer to a query that was made with tokens, from the half that the server has answered it with.
    ///
    /// # Errors
    /// Damaged or foreign bytes; [`Error::Token`] for an answer over segments, or made with evaluation keys, that the tokens
    /// were not fetched for: the query has to be asked again without them, as its masks are used up.
    pub fn complete(&self, query: &Query, answer: &[u8]) -> Result<Vec<u8>> {
        let spec = self.spec();
        let halves = form::of(spec).halves().ok_or_else(|| no_halves(spec))?;
        let (head, _, _) = QueryHead::open(spec, query.to_bytes())?;
        let tokens = &query.ahead;
        let Some(first) = tokens.first() else {
            return Err(Error::Token { detail: "the query was made without any".to_owned() });
        };
        let parts = AnswerParts::read(spec, &head, answer)?;
        expect_key("a response", self.form().response_key(self.root())?, parts.key)?;
        if tokens.iter().any(|token| *token.keys() != parts.keys) {
            let detail = "the server has other evaluation keys than when they were fetched";
            return Err(Error::Token { detail: detail.to_owned() });
        }
        let whole = QueryHead { half: None, ..head };
        let words = whole.words.as_ref();
        let ahead: usize = tokens.iter().map(Token::byte_len).sum();
        let capacity = answer.len() + ahead;
        let mut writer = ResponseWriter::new(spec, &whole, &KeysName::default(), 0, capacity);
        writer.segments(parts.segments.len() as u32);
        let mut seen = HashSet::with_capacity(parts.segments.len());
        for part in &parts.segments {
            let SegmentPart { id, rows, level, answers, .. } = part;
            // Each repetition would bring the tokens' half along.
            if !seen.insert(id.0) {
                let detail = "it was answered twice".to_owned();
                return Err(Error::Directory { segment: id.to_string(), detail });
            }
            if first.segment(id.0, *rows, *level).is_none() {
                return Err(unknown(format!("segment {id}")));
            }
            writer.body().extend_from_slice(part.head());
            let length = answers.len() / tokens.len();
            for (query, token) in tokens.iter().enumerate() {
                let other = token.segment(id.0, *rows, *level);
                let other = other.ok_or_else(|| unknown(format!("segment {id}")))?;
                let own = &answers[query * length..][..length];
                let span = writer.reserve(own.len() + other.len());
                halves.join(spec, *level, words, [other, own], writer.span(span))?;
            }
        }
        Ok(writer.finish(spec, parts.key))
    }
}

fn unknown(what: String) -> Error {
    Error::Token { detail: format!("they were fetched before the server had {what}") }
}
