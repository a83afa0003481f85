//! Queries of the compact form as their answers are checked and decrypted: their integers and what
//! the public masks make of them. Owner only; wiped on drop.

use super::Compact;
use super::masks::Masks;
use super::words::Words;
use zeroize::Zeroize;

/// Queries as their answers are opened with. Wiped on drop.
pub struct AskedQueries {
    queries: Vec<AskedQuery>,
}

struct AskedQuery {
    /// Its integers.
    words: Words,
    /// a' = Σ_i q_i a_i, transformed: a row for each prime.
    combined: Vec<Vec<u64>>,
}

impl AskedQueries {
    /// `queries` are integers, row by row.
    pub fn new(scheme: &Compact, masks: &Masks, queries: &[i64]) -> Self {
        let combined = masks.combine(queries);
        let rows = queries.chunks_exact(masks.dimension());
        let each = rows.zip(combined.chunks_exact(scheme.width().degree()));
        let ask = |(row, combined): (&[i64], &[u64])| AskedQuery {
            words: Words::of(scheme.width(), row.iter().map(|weight| *weight as u64)),
            combined: scheme.residues(combined),
        };
        AskedQueries { queries: each.map(ask).collect() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.queries.len()
    }

    pub(super) fn words(&self, query: usize) -> &Words {
        &self.queries[query].words
    }

    pub(super) fn combined(&self, query: usize) -> &[Vec<u64>] {
        &self.queries[query].combined
    }
}

impl core::fmt::Debug for AskedQueries {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "AskedQueries({} queries, redacted)", self.queries.len())
    }
}

impl Drop for AskedQueries {
    fn drop(&mut self) {
        for query in &mut self.queries {
            query.words.zeroize();
            query.combined.iter_mut().for_each(|row| row.zeroize());
        }
    }
}
