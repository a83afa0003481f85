//! Oblivious routing: whether a question's clusters are chosen by the server without learning which, and what ends that. It depends on
//! sizes alone, never on what is asked.

use std::collections::HashMap;

use ciphervec_owner::SegmentId;
use ciphervec_owner::search::{MAX_PROBES, QUERY_VERSION, Query};
use ciphervec_owner::{Error as SchemeError, Network};

use crate::belief::fetch_book::Failures;
use crate::clusters::table::Clustering;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::replica::Replica;

/// Coefficients of a polynomial, of which an answer about a block has one whole and one at its rows, and bytes of each, about.
const DEGREE: u64 = 4096;
const WORDS: [u64; 2] = [3, 2];
/// Seconds that folding a block for one probe takes a server; and opening a block the client, where all come. Reckoned: a wrong
/// figure costs time alone.
const FOLD: f64 = 50e-6;
const OPEN: f64 = 35e-6;
/// Bytes that say of a probe and a bit which cluster is chosen, and of every choice.
const NUMBERS: u64 = 1000;
const SQUARE: u64 = 51 << 10;

/// Sizes of clusters that a question is about.
struct Sizes {
    clusters: u64,
    probes: u64,
    rows: u64,
    blocks: u64,
}

impl Sizes {
    /// Whether an answer about the chosen clusters comes sooner than one about all.
    fn fold_sooner(&self, network: &Network) -> bool {
        let Sizes { clusters, probes, rows, blocks } = *self;
        let each = WORDS[0] * DEGREE * blocks + WORDS[1] * rows;
        let bits = u64::from(u64::BITS - (clusters - 1).leading_zeros());
        let up = SQUARE + NUMBERS * probes * bits;
        let folded =
            (clusters * blocks * probes) as f64 * FOLD + network.seconds(up + probes * each);
        let whole = (clusters * blocks) as f64 * OPEN + network.seconds(clusters * each);
        folded < whole
    }
}

impl Replica {
    /// Whether this collection's questions show no clusters.
    pub fn is_oblivious(&self) -> bool {
        self.description.routing.as_ref().is_some_and(|routing| routing.oblivious)
    }

    /// Whether a server is to fold the clusters in use. If not, all of them are answered about: where its release knows no folds, where
    /// that comes sooner, where clusters that were sealed again have another shape until the next clustering, and where one is in
    /// quarantine.
    pub fn folds_now(&self) -> bool {
        let active = self.routing.table.as_ref().and_then(|table| table.active.as_ref());
        let held = self.unasked().into_iter().any(|id| self.routing.cluster_of(id).is_some());
        self.is_oblivious() && !held && active.is_some_and(|active| self.folds(active))
    }

    fn folds(&self, active: &Clustering) -> bool {
        let levels: HashMap<_, _> =
            self.directory.segments().map(|(id, _, level)| (id, level)).collect();
        let level = |id: &SegmentId| levels.get(id).copied();
        let first = active.segments.first().and_then(level);
        let Some(deep) = first.filter(|_| active.segments.iter().all(|id| level(id) == first))
        else {
            return false;
        };
        let padded = (self.description.spec.dimension() as u64).next_power_of_two();
        let rows = u64::from(active.rows);
        let sizes = Sizes {
            clusters: active.count() as u64,
            probes: u64::from(active.probes),
            rows,
            blocks: rows.div_ceil(((DEGREE << deep) / padded).max(1)),
        };
        self.store.listing().query_version >= u64::from(QUERY_VERSION)
            && active.probes as usize <= MAX_PROBES.min(active.count())
            && sizes.fold_sooner(&self.description.network)
    }

    /// Refuses questions whose clusters are folded once an answer to one has failed its check, here or in another client with the same
    /// storage. To be called before anything is sent, and again before what came is opened: of answers that a server held back until
    /// many were on their way, one may fail.
    pub async fn expect_unbroken(&mut self, host: &dyn Host) -> Result<()> {
        self.fetches.book.reload(host).await?;
        let Failures { count, ended } = self.fetches.book.failures();
        if !ended {
            return Ok(());
        }
        Err(Error::FetchEnded(format!(
            "an answer about chosen clusters of {name}, or a record that was fetched in private, was not what its owner sealed ({count} so \
             far), and whoever changes a cluster can see which of them are chosen. Find out what happened first, then go on with {resume}().",
            name = self.name(),
            resume = self.face.named("resume_private_fetch")
        )))
    }

    /// What is made of an answer that failed: where it is about a chosen cluster, nothing that the store could see.
    pub async fn failed(&mut self, host: &dyn Host, query: &Query, error: SchemeError) -> Error {
        let chosen = |segments: &[SegmentId]| segments.iter().any(|id| query.folded().contains(id));
        match &error {
            SchemeError::Tampered { segments } if chosen(segments) => {}
            _ => return self.checked(host, error).await,
        }
        // Before anything that another client, or who ends this call, could meet.
        let written = self.fetches.book.end(host).await;
        self.query_keys.end(host, self.owner.key_id()).await;
        if let Err(error) = written {
            host.warn(&format!("that chosen clusters end could not be written down: {error}"));
        }
        Error::FetchEnded(format!(
            "the answer about a chosen cluster of {} is not what its rows give to the query: the server answers wrongly, or what it stores is \
             damaged. It is not asked again, and nothing is put into quarantine, as that would show which cluster was chosen. No clusters \
             are chosen, and nothing is fetched in private, until {}() is called.",
            self.name(),
            self.face.named("resume_private_fetch")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_clusters_come_whole_and_many_folded_whatever_is_asked() {
        let sooner = |clusters, probes, network: Network| {
            Sizes { clusters, probes, rows: 4096, blocks: 1 }.fold_sooner(&network)
        };
        let network = |bytes_per_second, round_trip| Network { bytes_per_second, round_trip };
        for network in [network(125e6, 0.02), network(12.5e6, 0.02), network(1e6, 0.05)] {
            assert!(!sooner(2, 2, network) && !sooner(4, 4, network));
        }
        assert!(sooner(2441, 8, network(12.5e6, 0.02)) && sooner(100, 4, network(1e6, 0.05)));
        // So fast that bytes cost nothing.
        assert!(!sooner(2441, 8, network(1e11, 0.0)));
        assert!(!sooner(1, 1, network(1e6, 0.05)));
    }
}
