//! Documents of token indices, checked, for the client.

use super::{PADDING, Spec};
use crate::error::{Error, Result};
use core::ops::Range;

/// Tokens end to end, each an index into every table; a document is a run of them.
#[derive(Clone, Copy)]
pub struct Documents<'a> {
    indices: &'a [i64],
    offsets: &'a [usize],
    tables: usize,
}

impl<'a> Documents<'a> {
    /// `indices` has as many numbers a token as there are tables; document i is tokens
    /// `offsets[i] .. offsets[i + 1]`.
    ///
    /// # Errors
    /// [`Error::Lookup`] for indices that are no whole number of tokens, or offsets that do not
    /// start at 0, decrease, or end elsewhere than the tokens.
    pub fn new(indices: &'a [i64], tables: usize, offsets: &'a [usize]) -> Result<Self> {
        let tokens = indices.len() / tables.max(1);
        if tables == 0 || tokens * tables != indices.len() {
            return Err(refuse(format!(
                "{tables} indices a token expected, got {} in all",
                indices.len()
            )));
        }
        let ends = (offsets.first(), offsets.last());
        if ends != (Some(&0), Some(&tokens)) || !offsets.is_sorted() {
            return Err(refuse(format!(
                "offsets that rise from 0 to the number of tokens, {tokens}, expected"
            )));
        }
        Ok(Documents { indices, offsets, tables })
    }

    /// How many documents.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many tokens all documents have together.
    pub fn tokens(&self) -> usize {
        self.indices.len() / self.tables
    }

    /// Where documents begin and end.
    pub fn offsets(&self) -> &'a [usize] {
        self.offsets
    }

    /// All indices, token after token.
    pub fn indices(&self) -> &'a [i64] {
        self.indices
    }

    /// The tokens of a document.
    pub(super) fn range(&self, document: usize) -> Range<usize> {
        self.offsets[document]..self.offsets[document + 1]
    }

    /// The indices of a token, one a table.
    pub(super) fn token(&self, token: usize) -> &'a [i64] {
        &self.indices[token * self.tables..][..self.tables]
    }

    /// The row of a table that a token names; none for padding and beyond the last token.
    pub(super) fn row(&self, token: usize, table: usize) -> Option<usize> {
        row_of(*self.indices.get(token * self.tables + table)?)
    }

    /// Refuses what the tables of `spec` do not have.
    ///
    /// # Errors
    /// [`Error::Lookup`] for an index out of range, padding in one table but not in another,
    /// another number of tables, a document longer than was declared, or no tokens at all where
    /// there is no document to be empty.
    pub(super) fn check(&self, spec: &Spec) -> Result<()> {
        if self.tables != spec.tables() {
            return Err(refuse(format!(
                "{} indices a token expected, one a table, got {}",
                spec.tables(),
                self.tables
            )));
        }
        if self.is_empty() {
            return Err(refuse("at least one document expected, got none".into()));
        }
        let choices = spec.choices();
        for token in 0..self.tokens() {
            let indices = self.token(token);
            let padded = indices.iter().filter(|&&index| index == PADDING).count();
            let fits = |index: &i64| usize::try_from(*index).is_ok_and(|index| index < choices);
            if padded == self.tables || indices.iter().all(fits) {
                continue;
            }
            return Err(refuse(format!(
                "indices from 0 to {} expected, or {PADDING} in all tables for padding; token {token} has {indices:?}",
                choices - 1
            )));
        }
        let lengths = self.offsets.windows(2).map(|pair| pair[1] - pair[0]);
        if let Some((document, length)) =
            lengths.enumerate().find(|(_, length)| *length > spec.limit())
        {
            return Err(refuse(format!(
                "at most {} tokens a document expected, document {document} has {length}; cut it, or set up the tables \
                 with a higher limit",
                spec.limit()
            )));
        }
        Ok(())
    }
}

fn refuse(detail: String) -> Error {
    Error::Lookup { operation: "query", detail }
}

/// The row that an index names; `None` for padding.
pub(super) fn row_of(index: i64) -> Option<usize> {
    (index != PADDING).then(|| usize::try_from(index).ok()).flatten()
}
