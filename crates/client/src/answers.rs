//! Queries and answers as bytes, for whoever carries them to a server and back: the owner makes or reads the query, somebody else has it
//! answered, and the owner checks and opens the answer. None of the steps trusts whoever carries.

use std::sync::Arc;

use ciphervec_owner::SegmentId;
use ciphervec_owner::search::{OpenOptions, Opened, Query, QueryOptions, asked_in};

use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::matches::{OpenedAnswer, Wanted, asked_of, ranked};
use crate::replica::Replica;
use crate::replica::alone::Alone;
use crate::replica::asking::{Sent, fetched, format_of, pass_over, query_epoch};
use crate::replica::batch::check_rows;
use crate::threads::heavy;

/// A batch of queries: its bytes are for a server, and what opens the answer stays in it.
#[derive(Debug)]
pub struct SealedQuery {
    query: Query,
    /// Whether somebody else made it.
    foreign: bool,
}

impl SealedQuery {
    /// What a server takes. In modes `sealed` and `sealed-query` it shows the server nothing.
    pub fn to_bytes(&self) -> &[u8] {
        self.query.to_bytes()
    }

    /// Queries in the batch.
    pub fn len(&self) -> usize {
        self.query.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.query.is_empty()
    }
}

impl Collection {
    /// Seals queries, end to end, under the query key that [`Self::query`] would ask under, and counts them.
    ///
    /// # Errors
    /// [`Error::Rows`] and [`Error::Input`] for what is no query, or where rows lie around several centers; [`Error::Quarantined`].
    pub async fn make_query(&self, host: &dyn Host, mut rows: Vec<f32>) -> Result<SealedQuery> {
        let (dimension, metric) = (self.spec().dimension(), self.spec().metric());
        let mut faults = Vec::new();
        check_rows(&mut rows, dimension, metric, "query_embeddings", &mut faults)?;
        if !faults.is_empty() {
            return Err(Error::rows(faults));
        }
        let count = rows.len() / dimension;
        let mut alone = self.alone(host).await?;
        let most = alone.query_keys.most();
        if !(1..=most).contains(&count) {
            return Error::input(format!("1 to {most} queries expected, got {count}."));
        }
        alone.refuse_held(host, false, None).await?;
        let epoch = query_epoch(&mut alone, host, count).await?;
        let centers: Vec<Vec<f32>> =
            alone.directory.centres().into_iter().map(<[f32]>::to_vec).collect();
        if centers.len() > 1 {
            return Error::input(format!(
                "the rows of {} lie around {} centers, and a query is around one. optimize() seals them alike.",
                alone.name(),
                centers.len()
            ));
        }
        let centre = centers.first().map_or(&[][..], Vec::as_slice);
        let options =
            QueryOptions { epoch, format: format_of(&alone), centre, ..QueryOptions::default() };
        let (owner, directory) = (&alone.owner, &alone.directory);
        let query = heavy(|| owner.query(&rows, directory, options))?;
        Ok(SealedQuery { query, foreign: false })
    }

    /// Takes in the bytes of plain queries that somebody else made, to open the answer to them.
    ///
    /// # Errors
    /// [`Error::Scheme`] for probes that are no unit vectors, filter tags, and modes or metrics that probes don't have.
    pub async fn read_query(&self, host: &dyn Host, query: &[u8]) -> Result<SealedQuery> {
        let alone = self.alone(host).await?;
        let owner = &alone.owner;
        let query = heavy(|| owner.read_query(query))?;
        Ok(SealedQuery { query, foreign: true })
    }

    /// Has the server, or the server's half in this process, answer the bytes of queries, whoever made them. Nothing is opened.
    ///
    /// # Errors
    /// [`Error::Scheme`] for bytes that are no queries; [`Error::Conflict`] for a session of this client's that is over.
    pub async fn evaluate(&self, host: &dyn Host, query: &[u8]) -> Result<Vec<u8>> {
        let mut alone = self.alone(host).await?;
        let (queries, epoch) = asked_in(&alone.description.spec, query)?;
        let owner = Arc::clone(&alone.owner);
        let sent = Sent {
            bytes: query,
            rows: queries as usize,
            named: None,
            epoch,
            owner: &owner,
            query: None,
            ahead: 0,
        };
        let before = alone.traffic;
        let (_, answer) = fetched(&mut alone, host, &sent).await?;
        alone.traffic = before; // nobody here asked
        Ok(answer)
    }

    /// Checks and opens the answer to a query, by the rows that are known here.
    ///
    /// # Errors
    /// [`Error::Tampered`] for an answer that is not what the segments give to the query, which puts them into quarantine. If somebody
    /// else made the query, it is [`ciphervec_owner::Error::Mismatched`], and nothing is: whoever brought the answer may have altered it.
    /// [`Error::Quarantined`], [`Error::Scheme`] for damaged bytes.
    pub async fn open_answer(
        &self,
        host: &dyn Host,
        query: &SealedQuery,
        answer: &[u8],
        wanted: &Wanted,
    ) -> Result<OpenedAnswer> {
        if wanted.count == Some(0) {
            return Error::input("count must be a whole number of at least 1, got 0.");
        }
        if let Some(within) = wanted.within.filter(|within| !(*within as f32).is_finite()) {
            return Error::input(format!("within must be a finite number, got {within}."));
        }
        let mut alone = self.alone(host).await?;
        let mut bare = Vec::new();
        if query.foreign {
            // A device is told nothing of them, and one writer does not keep the others' rows from being searched.
            alone.settle_quarantine(host).await?;
            bare = alone.unchecked();
            bare.retain(|id| alone.writer(*id).is_some());
        } else {
            alone.refuse_held(host, false, None).await?;
        }
        let opened = without(&mut alone, &bare, |replica| opened(replica, query, answer, wanted));
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(alone.checked(host, error).await),
        };
        if !query.foreign {
            pass_over(&mut alone, host, &opened.disqualified).await?;
        }
        let metric = self.spec().metric();
        let Opened { hits, exact, checked, mut disqualified, .. } = opened;
        disqualified.extend(bare);
        let hits = hits.into_iter();
        let hits = hits.map(|hits| ranked(metric, hits, wanted.count, exact, checked).into());
        let owners_only = alone.description.encrypts_queries() || !exact;
        Ok(OpenedAnswer { hits: hits.collect(), exact, checked, owners_only, disqualified })
    }

    /// Puts segments into quarantine that failed a check elsewhere, as a failed answer does.
    ///
    /// # Errors
    /// What the store's state gives rise to.
    pub async fn hold(&self, host: &dyn Host, segments: &[SegmentId], reason: &str) -> Result<()> {
        self.alone(host).await?.hold(host, segments, reason).await
    }

    /// Segments in quarantine.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn quarantined(&self, host: &dyn Host) -> Result<Vec<SegmentId>> {
        let mut alone = self.alone(host).await?;
        alone.settle_quarantine(host).await?;
        Ok(alone.directory.quarantined().to_vec())
    }

    /// Segments with rows that nothing is checked about, because a release before 0.2 sealed them; and who did, where that was a writer.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn unchecked(&self, host: &dyn Host) -> Result<Vec<(SegmentId, Option<String>)>> {
        let alone = self.alone(host).await?;
        let named = |id: SegmentId| (id, alone.writer(id).map(str::to_owned));
        Ok(alone.unchecked().into_iter().map(named).collect())
    }
}

impl Replica {
    fn unchecked(&self) -> Vec<SegmentId> {
        self.directory.unchecked(&self.owner).collect()
    }
}

/// Does work as if these segments were in quarantine.
fn without<T>(
    alone: &mut Alone<'_>,
    segments: &[SegmentId],
    work: impl FnOnce(&Replica) -> T,
) -> T {
    let held: Vec<_> = alone.directory.quarantined().to_vec();
    segments.iter().for_each(|id| alone.directory.quarantine(*id));
    let done = work(alone);
    for id in segments.iter().filter(|id| !held.contains(id)) {
        alone.directory.release(*id);
    }
    done
}

fn opened(
    replica: &Replica,
    query: &SealedQuery,
    answer: &[u8],
    wanted: &Wanted,
) -> core::result::Result<Opened, ciphervec_owner::Error> {
    let retrieval = asked_of(replica.description.spec.metric(), wanted, replica.directory.len());
    let selection = wanted.among.as_ref().map(|names| replica.directory.select(names));
    let options = OpenOptions { selection: selection.as_ref(), ..OpenOptions::new(retrieval) };
    let (owner, directory) = (&replica.owner, &replica.directory);
    heavy(|| owner.open(&query.query, answer, directory, options))
}
