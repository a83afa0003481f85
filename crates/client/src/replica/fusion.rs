//! Fusion: one order of two, that of vectors and that of words. It is a function of both lists alone; no row is in it that is in neither.

use std::cmp::Ordering;
use std::collections::HashMap;

use ciphervec_owner::Id;

use crate::error::{Error, Result};
use crate::matches::Matches;
use crate::records::sparse::SparseVector;
use crate::sorting::sort_by;

/// How many of each list are looked at, unless more hits are asked for.
pub const WINDOW: usize = 100;

/// How two orders are made one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fusion {
    /// Reciprocal ranks: the sum of 1 / (k + rank) over the lists that have the row, ranks from 1 on.
    Ranks {
        /// How little the first ranks stand out: 60 unless told otherwise.
        k: f64,
    },
    /// The sum of both scores, each from 0 to 1 over its list: `alpha` of the vectors' and 1 − `alpha` of the words'. Vectors' scores are
    /// 0 for the lowest of the list and for rows beyond it; words' are 0 for rows without any of the words.
    Weighted {
        /// From 0 to 1.
        alpha: f64,
    },
    /// The words' order alone: no vector is asked, and scores are those of BM25, or inner products.
    Words,
}

/// What is asked beside vectors: one entry a query.
#[derive(Clone, Debug)]
pub enum Asked {
    /// Texts, by their words.
    Texts(Vec<String>),
    /// Sparse vectors.
    Vectors(Vec<SparseVector>),
}

impl Asked {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Vectors(vectors) => vectors.len(),
        }
    }
}

/// What is asked beside vectors, and how both orders are made one.
#[derive(Clone, Debug)]
pub struct Hybrid {
    /// What is asked.
    pub asked: Asked,
    /// How both are made one.
    pub fusion: Fusion,
    /// How many hits of each list are looked at; at least as many as are asked for are.
    pub window: usize,
    /// Whether each index of the sparse vectors that are asked weighs more the fewer rows have it: its weight there times
    /// ln(1 + (n − f + ½)/(f + ½)), if f of all n rows have it. BM25 does so by itself.
    pub idf: bool,
}

impl Hybrid {
    /// With the first [`WINDOW`] hits of each list.
    pub fn new(asked: Asked, fusion: Fusion) -> Self {
        Hybrid { asked, fusion, window: WINDOW, idf: false }
    }

    /// Whether vectors are asked about, too.
    pub(crate) fn scans(&self) -> bool {
        self.fusion != Fusion::Words
    }

    pub(crate) fn check(&self, queries: usize) -> Result<()> {
        let (what, count) = match &self.asked {
            Asked::Texts(texts) => ("text", texts.len()),
            Asked::Vectors(vectors) => ("sparse vector", vectors.len()),
        };
        if !self.scans() && queries > 0 {
            return Error::input(format!(
                "an order by words alone takes no vectors, got {queries}. Leave them out, or fuse both."
            ));
        }
        if self.idf && what == "text" {
            return Error::input("idf weighs sparse vectors; BM25 weighs rare words by itself.");
        }
        if let Asked::Vectors(vectors) = &self.asked
            && let Some(fault) = vectors.iter().find_map(SparseVector::fault)
        {
            return Error::input(format!("a sparse vector that is asked {fault}."));
        }
        let within = match self.fusion {
            Fusion::Ranks { k } if !(k.is_finite() && k >= 0.0) => {
                Err(format!("the k of reciprocal ranks is a finite number of at least 0, got {k}"))
            }
            Fusion::Weighted { alpha } if !(0.0..=1.0).contains(&alpha) => {
                Err(format!("alpha is a number from 0 to 1, got {alpha}"))
            }
            _ if self.window == 0 => Err("a fusion looks at 1 hit or more, got 0".to_owned()),
            _ if self.scans() && count != queries => Err(format!(
                "a fusion takes one {what} for each query: expected {queries}, got {count}"
            )),
            _ => Ok(()),
        };
        within.map_err(|says| Error::Input(format!("{says}.")))
    }
}

/// Rows with a score by words, the highest first: at most as many as the list looks at, and the words' score of every row that the other
/// list has, 0 where it has none of them.
#[derive(Clone, Debug, Default)]
pub struct ByWords {
    pub ranked: Vec<(Id, f64)>,
    pub others: HashMap<Id, f64>,
}

#[derive(Default)]
struct Both {
    vectors: Option<(usize, f64)>,
    words: Option<(usize, f64)>,
}

/// The `count` rows that are the highest in both orders together. Equally high ones: first those that the vectors' list has, in its order.
pub fn fused(fusion: Fusion, by_vectors: Matches, by_words: &ByWords, count: usize) -> Matches {
    let Matches { ids, scores, exact, checked, .. } = by_vectors;
    let mut all: HashMap<Id, Both> = HashMap::with_capacity(ids.len() + by_words.ranked.len());
    let lowest = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (rank, (id, score)) in ids.into_iter().zip(scores).enumerate() {
        all.entry(id).or_default().vectors = Some((rank, score));
    }
    for (rank, (id, score)) in by_words.ranked.iter().enumerate() {
        all.entry(id.clone()).or_default().words = Some((rank, *score));
    }
    let most = by_words.ranked.first().map_or(0.0, |(_, score)| *score);
    let of_range =
        |score: f64| if highest > lowest { (score - lowest) / (highest - lowest) } else { 1.0 };
    let value = |id: &Id, both: &Both| match fusion {
        Fusion::Ranks { k } => [both.vectors, both.words]
            .into_iter()
            .flatten()
            .map(|(rank, _)| 1.0 / (k + (rank + 1) as f64))
            .sum(),
        Fusion::Weighted { alpha } => {
            let near = both.vectors.map_or(0.0, |(_, score)| of_range(score));
            let said =
                both.words.map(|(_, score)| score).or_else(|| by_words.others.get(id).copied());
            let said = if most > 0.0 { said.unwrap_or(0.0) / most } else { 0.0 };
            alpha * near + (1.0 - alpha) * said
        }
        Fusion::Words => both.words.map_or(0.0, |(_, score)| score),
    };
    let mut hits: Vec<_> =
        all.into_iter().map(|(id, both)| (value(&id, &both), both, id)).collect();
    let rank = |one: Option<(usize, f64)>| one.map_or(usize::MAX, |(rank, _)| rank);
    let order = |a: &(f64, Both, Id), b: &(f64, Both, Id)| -> Ordering {
        let later = |one: &Both| (rank(one.vectors), rank(one.words));
        b.0.total_cmp(&a.0).then_with(|| later(&a.1).cmp(&later(&b.1)))
    };
    sort_by(&mut hits, order);
    hits.truncate(count);
    let mut found = Matches { exact, checked, ..Matches::default() };
    for (value, _, id) in hits {
        found.ids.push(id);
        found.distances.push(0.0 - value);
        found.scores.push(value);
    }
    found
}

impl ByWords {
    /// The words' order alone.
    pub fn alone(self) -> Matches {
        let (ids, scores): (Vec<_>, Vec<f64>) = self.ranked.into_iter().unzip();
        let distances = scores.iter().map(|score| 0.0 - score).collect();
        Matches { ids, distances, scores, exact: true, checked: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(hits: &[(i64, f64)]) -> Matches {
        Matches {
            ids: hits.iter().map(|(id, _)| Id::from(*id)).collect(),
            distances: hits.iter().map(|(_, score)| 1.0 - score).collect(),
            scores: hits.iter().map(|(_, score)| *score).collect(),
            exact: true,
            checked: true,
        }
    }

    fn words(hits: &[(i64, f64)], others: &[(i64, f64)]) -> ByWords {
        let of = |hits: &[(i64, f64)]| {
            hits.iter().map(|(id, score)| (Id::from(*id), *score)).collect::<Vec<_>>()
        };
        ByWords { ranked: of(hits), others: of(others).into_iter().collect() }
    }

    fn ids(found: &Matches) -> Vec<i64> {
        found
            .ids
            .iter()
            .map(|id| match id {
                Id::Number(number) => *number,
                Id::Text(_) => -1,
            })
            .collect()
    }

    #[test]
    fn ranks_are_summed_and_ties_keep_the_order_of_vectors() {
        let vectors = matches(&[(1, 0.9), (2, 0.8), (3, 0.7)]);
        let words = words(&[(3, 5.0), (4, 4.0), (1, 1.0)], &[]);
        let found = fused(Fusion::Ranks { k: 1.0 }, vectors, &words, 10);
        // 1: 1/2 + 1/4, 3: 1/4 + 1/2, 2: 1/3, 4: 1/3.
        assert_eq!(ids(&found), [1, 3, 2, 4]);
        assert_eq!(found.scores, [0.75, 0.75, 1.0 / 3.0, 1.0 / 3.0]);
        assert_eq!(found.distances, [-0.75, -0.75, -1.0 / 3.0, -1.0 / 3.0]);
    }

    #[test]
    fn weighted_scores_are_of_their_ranges() {
        let vectors = matches(&[(1, 0.9), (2, 0.5), (3, 0.4)]);
        let words = words(&[(4, 8.0), (2, 4.0)], &[(1, 2.0), (3, 0.0)]);
        let found = fused(Fusion::Weighted { alpha: 0.5 }, vectors, &words, 3);
        // 1: (1 + 2/8) / 2, 4: (0 + 1) / 2, 2: (0.2 + 0.5) / 2.
        assert_eq!(ids(&found), [1, 4, 2]);
        assert!((found.scores[0] - 0.625).abs() < 1e-15 && found.scores[1] == 0.5);
        assert!((found.scores[2] - 0.35).abs() < 1e-15);
    }

    #[test]
    fn lists_may_be_empty() {
        let none = fused(Fusion::Ranks { k: 60.0 }, Matches::default(), &ByWords::default(), 5);
        assert!(none.ids.is_empty());
        let alone =
            fused(Fusion::Weighted { alpha: 0.25 }, matches(&[(7, -3.0)]), &ByWords::default(), 5);
        assert_eq!((ids(&alone), alone.scores), (vec![7], vec![0.25]));
        let words = words(&[(8, 2.0)], &[]);
        let alone = fused(Fusion::Weighted { alpha: 0.25 }, Matches::default(), &words, 5);
        assert_eq!((ids(&alone), alone.scores), (vec![8], vec![0.75]));
    }
}
