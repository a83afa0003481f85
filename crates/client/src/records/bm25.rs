//! BM25: how much the words of a row say about a question, as Lucene's formula has it. Every figure in it is of rows that are there now.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How rows are ranked by words.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bm25 {
    /// How much more often a word counts than once: 0 for no more at all.
    pub k1: f64,
    /// How much the length of a document counts, from 0 to 1.
    pub b: f64,
}

impl Default for Bm25 {
    /// Lucene's.
    fn default() -> Self {
        Bm25 { k1: 1.2, b: 0.75 }
    }
}

impl Bm25 {
    pub(crate) fn check(&self) -> Result<()> {
        let Bm25 { k1, b } = *self;
        if (0.0..=1000.0).contains(&k1) && (0.0..=1.0).contains(&b) {
            return Ok(());
        }
        Error::input(format!(
            "BM25 takes k1 from 0 to 1000 and b from 0 to 1, got k1 {k1} and b {b}."
        ))
    }

    /// What a word that a row has `times` says, if of `corpus` so many rows have it.
    pub fn weight(&self, corpus: &Corpus, having: u64, times: u32, length: u32) -> f64 {
        let (all, having) = (corpus.rows as f64, having as f64);
        let rare = rarity(all, having);
        let times = f64::from(times);
        let relative = f64::from(length) * corpus.rows as f64 / corpus.words as f64;
        rare * times * (self.k1 + 1.0) / (times + self.k1 * (1.0 - self.b + self.b * relative))
    }
}

/// How much a word says that `having` of `all` rows have.
pub fn rarity(all: f64, having: f64) -> f64 {
    (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
}

/// What is told of all rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Corpus {
    /// Rows with a word at least.
    pub rows: u64,
    /// Their words, as often as they are there.
    pub words: u64,
}
