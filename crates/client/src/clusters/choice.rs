//! Clusters: how a collection is to be routed.

use ciphervec_owner::{IndexSpec, Metric, Mode};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::face::Face;

/// Clusters of one collection: a query names segments by 16 bytes each.
const MAX_CLUSTERS: u32 = 1 << 20;

/// That a query is to ask about a few clusters of near rows instead of all rows, which shows the server which.
///
/// What is left out is chosen when the rows are clustered, so that `recall` of the ten nearest rows are found, measured on the key
/// holder's own rows; as many decoys as probes. Clusters stand in fixed secret groups of one and its decoys, and a query names whole
/// groups: related queries share groups, so that however many there are, the server can't tell within one; that they are related it
/// sees. Filters and ids choose among the rows of these clusters, and no others are scanned for them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clusters {
    /// Of equally many rows.
    pub count: Option<u32>,
    /// That are scanned for a query.
    pub probes: Option<u32>,
    /// Beside these.
    pub decoys: Option<u32>,
    /// The share of the ten nearest rows that is to be found.
    #[serde(default = "recall")]
    pub recall: f64,
    /// Has to be said in mode `sealed-query`, where the server has the rows, and with them about the centroids.
    #[serde(default)]
    pub server_learns_queries: bool,
    /// That all clusters are scanned, and folded under encryption to those near the question: the server learns nothing of which they
    /// are. There are no decoys then.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub oblivious: bool,
}

const fn recall() -> f64 {
    0.95
}

impl Default for Clusters {
    fn default() -> Self {
        let (server_learns_queries, oblivious) = (false, false);
        Clusters {
            count: None,
            probes: None,
            decoys: None,
            recall: recall(),
            server_learns_queries,
            oblivious,
        }
    }
}

impl Clusters {
    /// Decoys beside so many probes.
    pub(crate) fn decoys_beside(&self, probes: usize) -> usize {
        let unsaid = if self.oblivious { 0 } else { probes };
        self.decoys.map_or(unsaid, |decoys| decoys as usize)
    }

    /// That a collection of this kind may be routed so.
    pub(crate) fn check(&self, face: Face, spec: &IndexSpec, filterable: &[String]) -> Result<()> {
        self.check_numbers()?;
        let quoted = |mode: Mode| face.quoted(mode.as_str());
        match spec.mode() {
            Mode::SealedIndex => {
                return Error::input(format!(
                    "routing is refused in mode {}: the server sees the queries, and from where they lie and which clusters they name \
                     it learns where the centroids are, and so about where each sealed row is. Use mode {}.",
                    quoted(Mode::SealedIndex),
                    quoted(Mode::Sealed)
                ));
            }
            Mode::Open => {
                return Error::input(format!(
                    "mode {} hides nothing and is not routed: it is there to compare with.",
                    quoted(Mode::Open)
                ));
            }
            Mode::SealedQuery if !self.server_learns_queries && !self.oblivious => {
                return Error::input(format!(
                    "in mode {} the server has the rows, computes the centroids itself, and learns from the clusters that a query names \
                     where it lies: to the precision of a cluster. If that is acceptable, say so with {} of the routing; mode {} does \
                     not show it.",
                    quoted(Mode::SealedQuery),
                    face.named("server_learns_queries"),
                    quoted(Mode::Sealed)
                ));
            }
            _ => {}
        }
        if self.oblivious && spec.metric() == Metric::Hamming {
            return Error::input(format!(
                "clusters are not chosen under encryption with metric {}: that adds noise, with which its counts would not always be \
                 exact. Leave {} out, or the routing.",
                face.quoted(Metric::Hamming.as_str()),
                face.said("oblivious")
            ));
        }
        if !filterable.is_empty() {
            return Error::input(
                "a routed collection has no filterable fields: their tags would show the server which rows of a cluster are alike, and \
                 which are padding. Filters work on every field without, and are tested here.",
            );
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<()> {
        let numbers =
            [("count", self.count, 2), ("probes", self.probes, 1), ("decoys", self.decoys, 0)];
        for (name, value, least) in numbers {
            if let Some(value) = value.filter(|value| !(least..=MAX_CLUSTERS).contains(value)) {
                return Error::input(format!(
                    "{name} must be {least} to {MAX_CLUSTERS}, got {value}."
                ));
            }
        }
        if let Some(decoys) = self.decoys.filter(|decoys| self.oblivious && *decoys > 0) {
            return Error::input(format!(
                "a server that does not learn which clusters are chosen needs no decoys, got {decoys}."
            ));
        }
        if !(self.recall > 0.0 && self.recall <= 1.0) {
            return Error::input(format!(
                "recall must be above 0 and at most 1, got {}.",
                self.recall
            ));
        }
        let (probes, decoys) = (self.probes.unwrap_or(1), self.decoys.unwrap_or(0));
        if let Some(count) = self.count.filter(|count| probes + decoys > *count) {
            return Error::input(format!(
                "{probes} probes and {decoys} decoys are more than {count} clusters."
            ));
        }
        Ok(())
    }
}
