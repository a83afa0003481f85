//! Results for others in mode `sealed` that carry no noise: the rows that may be the closest are read as they were put in, and ranked here.
//!
//! Ids, order, distances and omissions are then functions of rows and queries alone. What noise still decides is whether a result can be
//! told at all where others are nearly as close: that is counted, and refused once it was too often (`docs/sealed.md`, section 4.6).

use ciphervec_owner::search::Reach;
use ciphervec_owner::{Id, Metric, Mode};

use std::sync::Arc;

use crate::change::{ORIGINALS, StoredSegment};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::replica::Replica;
use crate::replica::fetch::Fetch;
use crate::replica::fetching::MOST_PRIVATE;
use crate::replica::read::Vectors;
use crate::replica::search::{Matches, Question};

/// Results of which as many rows are read in private as one message asks for, and the most for which any are.
const FEW: usize = 1;
const MANY: usize = 20;
/// Rows that are read then.
const READ_OF_FEW: usize = 10;
/// Rows that are read here, at least, and for each result.
const READ_HERE: usize = 256;
const READ_EACH: usize = 16;

impl Replica {
    /// Rows to read for each query; `None` where results for others have to be flooded. It depends on no query.
    ///
    /// # Errors
    /// [`Error::Exhausted`] where noise had a say in too many results.
    pub async fn candidates(
        &mut self,
        host: &dyn Host,
        question: &Question,
        fetch: Fetch,
    ) -> Result<Option<usize>> {
        let Some(rows) = self.candidates_of(question) else { return Ok(None) };
        match self.way(host, fetch, (false, true), rows).await {
            Ok(_) => {}
            Err(Error::Input(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
        self.expect_doubts(host).await?;
        Ok(Some(rows))
    }

    fn candidates_of(&self, question: &Question) -> Option<usize> {
        let spec = &self.description.spec;
        let count = question.count.filter(|_| question.within.is_none())?;
        // Each of several centres would have a ranking of its own, and of clusters that are named more is seen.
        let simple = spec.mode() == Mode::Sealed
            && spec.metric() != Metric::Hamming
            && self.description.routing.is_none()
            && self.directory.centres().len() < 2;
        // Without incarnation or sums a server can shift scores further than is allowed for.
        let checked =
            spec.incarnation().is_some() && self.directory.unchecked(&self.owner).next().is_none();
        let kept =
            |one: &Arc<StoredSegment>| one.may_have(ORIGINALS) && self.writer(one.id).is_none();
        if !simple || !checked || !self.read_entries().iter().all(kept) {
            return None;
        }
        match self.store.fetching() {
            None => Some(count.saturating_mul(READ_EACH).max(READ_HERE)),
            Some(_) if count <= FEW => Some(READ_OF_FEW),
            Some(_) if count <= MANY => Some(MOST_PRIVATE),
            Some(_) => None,
        }
    }

    /// The closest of some candidates by their own vectors, ties in the order of ids.
    ///
    /// # Errors
    /// [`Error::Exhausted`] and [`Error::Input`] where rows that were not read may be as close.
    pub async fn ranked_by_vectors(
        &mut self,
        host: &dyn Host,
        question: &Question,
        found: Vec<Matches>,
        fetch: Fetch,
    ) -> Result<Vec<Matches>> {
        let dimension = self.description.spec.dimension();
        let (rows, count) = (question.candidates.unwrap_or(0), question.count.unwrap_or(0));
        let way = self.way(host, fetch, (false, true), rows).await?;
        let mut ranked = Vec::with_capacity(found.len());
        for (query, found) in question.rows.chunks_exact(dimension).zip(found) {
            let (_, vectors) = self.read_parts(host, &found.ids, (false, true), way).await?;
            let Some(vectors) = vectors else { return Err(self.too_fast()) };
            ranked.push(self.rank(host, query, found, &vectors, count).await?);
        }
        Ok(ranked)
    }

    async fn rank(
        &self,
        host: &dyn Host,
        query: &[f32],
        found: Matches,
        vectors: &Vectors,
        count: usize,
    ) -> Result<Matches> {
        let metric = self.description.spec.metric();
        let dimension = self.description.spec.dimension();
        let rows = vectors.rows.chunks_exact(dimension);
        let mut ranked: Vec<(f64, Id)> =
            rows.map(|row| key(metric, row, query)).zip(found.ids).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        ranked.truncate(count);
        let last = ranked.last().map_or(f64::INFINITY, |(key, _)| *key);
        let beyond = |value: f64| if metric.higher_is_closer() { -value } else { value };
        let covered = |value: f64| ranked.len() == count && last < beyond(value);
        let (told, surely) = match found.reach {
            None => (true, true),
            Some(Reach { closest, surely }) => (covered(closest), covered(surely)),
        };
        let kept = !vectors.original.contains(&false);
        let told = told && kept;
        if !told || !surely {
            self.count_doubt(host).await?;
        }
        if !told {
            let why = match kept {
                true => format!("more than {} are nearly as close", vectors.original.len()),
                false => "vectors of some were not kept as they were put in".to_owned(),
            };
            return Error::input(format!(
                "which rows of {} are the {count} closest can't be told without noise: {why}. Ask for fewer, or say with flooding how much \
                 noise scores may carry.",
                self.name()
            ));
        }
        let mut matches = Matches { exact: true, checked: found.checked, ..Matches::default() };
        for (key, id) in ranked {
            let value = if metric.higher_is_closer() { -key } else { key };
            let (distance, score) =
                if metric.higher_is_closer() { (1.0 - value, value) } else { (value, -value) };
            matches.ids.push(id);
            matches.distances.push(distance);
            matches.scores.push(score);
        }
        Ok(matches)
    }
}

/// Smaller is closer: a function of both vectors alone, to the last bit.
fn key(metric: Metric, row: &[f32], query: &[f32]) -> f64 {
    let pairs = || row.iter().zip(query).map(|(x, y)| (f64::from(*x), f64::from(*y)));
    let dot = || pairs().map(|(x, y)| x * y).sum::<f64>();
    match metric {
        Metric::L2 => pairs().map(|(x, y)| (x - y) * (x - y)).sum(),
        Metric::InnerProduct | Metric::Hamming => -dot(),
        Metric::Cosine => {
            let (own, other) =
                pairs().fold((0.0, 0.0), |(own, other), (x, y)| (own + x * x, other + y * y));
            -(dot() / (own.sqrt() * other.sqrt())).clamp(-1.0, 1.0)
        }
    }
}
