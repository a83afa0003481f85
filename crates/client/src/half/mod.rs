//! The owner's half of an index that stands alone: it seals, asks and opens, and its caller carries the bytes to a server and back.
//! Whatever others are shown is counted where collections count it.

mod index;
mod index_file;
mod opening;
mod receiver;

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ciphervec_owner::protect::filter::FilterTag;
use ciphervec_owner::search::{
    AnswerFormat, Expected, OpenOptions, Opened, Owner, OwnerTimings, Query, QueryOptions,
    RotationState, SealedSegment, SegmentDirectory, Selection, TokenPool,
};
use ciphervec_owner::{Id, IndexSpec, Keys, Mode, SegmentId};

use crate::error::{Error, Result};
use crate::face::Face;
use crate::host::Host;
use crate::matches::{OpenedAnswer, Wanted, asked_of, ranked, retrieval};
use crate::replica::request::Audience;
use crate::threads::heavy;
use crate::view::View;
use crate::view::flooding::{FloodingPlan, check_deviation, uncounted};
use crate::view::spread::OffCenter;

use opening::Opening;

pub use index::Searched;
pub use index_file::{IndexFile, IndexPart};
pub use receiver::AnswerReceiver;

/// An owner, and what it knows of the rows of its segments.
pub struct OwnersHalf {
    face: Face,
    owner: Arc<Owner>,
    /// What rows are sealed around, where that was given.
    given: Vec<f32>,
    directory: RwLock<SegmentDirectory>,
    off_center: Mutex<OffCenter>,
}

impl core::fmt::Debug for OwnersHalf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.owner.fmt(f)
    }
}

/// What a query is made under.
#[derive(Default)]
pub struct Ask<'a> {
    /// Of its query key.
    pub epoch: u32,
    /// That a row must have to be in the answer.
    pub tags: &'a [FilterTag],
    /// The only segments that it is about.
    pub segments: Option<&'a [SegmentId]>,
    /// What the server answers in.
    pub format: AnswerFormat,
    /// Halves of answers that are here: of a pool that has enough of them, they are used.
    pub tokens: Option<&'a TokenPool>,
    /// Which of several centers it is around.
    pub center: Option<&'a [f32]>,
}

/// A batch of queries, with what opens the answer.
#[derive(Debug)]
pub struct AskedQuery {
    query: Arc<Query>,
    epoch: u32,
    /// Whether somebody else made it.
    foreign: bool,
}

impl AskedQuery {
    /// The queries.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Of the query key.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }
}

/// Who an answer is opened for, and what of it.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// What is read.
    pub wanted: Wanted,
    /// Who reads it.
    pub audience: Option<Audience>,
    /// The standard deviation of the noise in every score that others are shown, a cosine.
    pub flooding: f64,
    /// Segments that came after the question, which may be missing in the answer.
    pub newer: Vec<SegmentId>,
}

/// What an answer is opened by.
struct Known {
    /// A [`SegmentDirectory::snapshot`], which does not say how many rows there are.
    directory: SegmentDirectory,
    live: usize,
    /// The only rows that count.
    selection: Option<Arc<Selection>>,
}

impl OwnersHalf {
    /// Of an index under these keys, of which nothing is known yet. `center` is what rows are sealed around; where it is empty they choose.
    ///
    /// # Errors
    /// [`Error::Scheme`] for parameters that were refused.
    pub fn new(
        face: Face,
        keys: &Keys,
        spec: IndexSpec,
        state: &RotationState<'_>,
        center: Vec<f32>,
    ) -> Result<Self> {
        Ok(OwnersHalf {
            face,
            owner: Arc::new(heavy(|| Owner::with_rotation(keys, spec, state))?),
            given: center,
            directory: RwLock::default(),
            off_center: Mutex::default(),
        })
    }

    /// What holds the keys.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// What is known of rows, for as long as nobody changes it.
    pub fn read(&self) -> RwLockReadGuard<'_, SegmentDirectory> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, to be changed.
    pub fn write(&self) -> RwLockWriteGuard<'_, SegmentDirectory> {
        self.directory.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn view<'a>(&'a self, directory: &'a SegmentDirectory) -> View<'a> {
        View { face: self.face, owner: &self.owner, directory }
    }

    /// What rows are taken less before they are sealed; empty where that is nothing.
    pub fn center(&self) -> Vec<f32> {
        self.view(&self.read()).center(&self.given).to_vec()
    }

    /// The same for these rows, which choose one where they lie far from zero, or from the centers that there are.
    pub fn center_for(&self, rows: &[f32]) -> Vec<f32> {
        self.view(&self.read()).center_for(&self.given, rows)
    }

    /// Looks at rows that are to be added, and warns once where their distances will not tell them apart.
    ///
    /// # Errors
    /// [`Error::Ended`] where the warning ends the call.
    pub fn see(&self, host: &dyn Host, rows: &[f32]) -> Result<()> {
        let mut seen = self.off_center.lock().unwrap_or_else(PoisonError::into_inner);
        seen.see(host, self.owner.spec(), &self.given, rows);
        host.check()
    }

    /// Seals rows around a center, or the one that suits them.
    ///
    /// # Errors
    /// [`Error::Scheme`] for rows that fail the checks.
    pub fn seal(
        &self,
        rows: &[f32],
        ids: &[Id],
        expected: &Expected,
        center: Option<&[f32]>,
    ) -> Result<SealedSegment> {
        let center = center.map_or_else(|| self.center_for(rows), <[f32]>::to_vec);
        Ok(heavy(|| self.owner.seal_around(rows, ids, expected, &center))?)
    }

    /// That none of the ids is here.
    ///
    /// # Errors
    /// [`Error::DuplicateId`].
    pub fn refuse_known(&self, ids: &[Id]) -> Result<()> {
        self.view(&self.read()).refuse_known(ids)
    }

    /// Where ids are.
    ///
    /// # Errors
    /// [`Error::UnknownId`].
    pub fn places(&self, ids: &[Id]) -> Result<Vec<(SegmentId, u32)>> {
        self.view(&self.read()).places(ids)
    }

    /// Leaves rows out of every answer from now on; where they are.
    ///
    /// # Errors
    /// [`Error::UnknownId`]; all of them stay then.
    pub fn forget(&self, ids: &[Id]) -> Result<Vec<(SegmentId, u32)>> {
        let mut directory = self.write();
        self.view(&directory).places(ids)?;
        Ok(ids.iter().filter_map(|id| directory.mark_deleted(id)).collect())
    }

    /// Puts unsealed rows of these ids, end to end, where they were put in: with their lengths, which `ip` and `l2` keep, and their
    /// center.
    pub fn rescale(&self, ids: &[Id], rows: &mut [f32]) {
        let directory = self.read();
        let view = self.view(&directory);
        for (id, row) in ids.iter().zip(rows.chunks_exact_mut(self.owner.spec().dimension())) {
            match directory.locate(id) {
                Some((segment, _)) => view.rescale(segment, id, row),
                None => row.fill(0.0),
            }
        }
    }

    /// Seals queries, end to end, for the segments that are known.
    ///
    /// # Errors
    /// [`Error::Input`] where rows lie around several centers and none is named; [`Error::Scheme`].
    pub fn query(&self, rows: &[f32], ask: Ask<'_>) -> Result<AskedQuery> {
        let directory = self.read();
        let centers = directory.centres();
        let centre = match (ask.center, &*centers) {
            (Some(named), _) => named,
            (None, []) => &[],
            (None, [one]) => one,
            (None, several) => {
                return Error::input(format!(
                    "the segments of {} are sealed around {} centers, and a query is around one: ask once with each of centers(), or let \
                     optimize() seal them alike.",
                    self.view(&directory).name(),
                    several.len()
                ));
            }
        };
        let Ask { epoch, tags, segments, format, .. } = ask;
        let count = rows.len() / self.owner.spec().dimension();
        let tokens = match ask.tokens.filter(|_| segments.is_none()) {
            Some(pool) => self.owner.take_tokens(pool, count, &directory, epoch, format)?,
            None => None,
        };
        let options = QueryOptions { epoch, tags, segments, format, centre, tokens, fold: None };
        let query = heavy(|| self.owner.query(rows, &directory, options))?;
        Ok(AskedQuery { query: Arc::new(query), epoch, foreign: false })
    }

    /// Takes in the bytes of plain queries that somebody else made, to open the answer to them.
    ///
    /// # Errors
    /// [`Error::Scheme`] for probes that are no unit vectors, filter tags, and modes or metrics that probes don't have.
    pub fn read_query(&self, query: &[u8], epoch: u32) -> Result<AskedQuery> {
        let query = heavy(|| self.owner.read_query(query))?;
        Ok(AskedQuery { query: Arc::new(query), epoch, foreign: true })
    }

    /// What results for others cost with noise of this standard deviation in every score, and how many may still be shown under the query
    /// key of this epoch.
    ///
    /// # Errors
    /// [`Error::Input`] in other modes than `sealed`, and for rows of writers that were not adopted.
    pub async fn flooding_plan(
        &self,
        host: &dyn Host,
        deviation: f64,
        epoch: u32,
    ) -> Result<FloodingPlan> {
        let known = self.known(None);
        let view = self.view(&known.directory);
        view.flooding_plan(host, deviation, known.live, (epoch, false)).await
    }

    /// Checks and opens a server's answer, by the rows that are known here. A writer's segment that fails its check is passed over, with a
    /// warning, from now on.
    ///
    /// # Errors
    /// [`Error::Tampered`] for an answer that is not what the segments give to the query, of which [`ciphervec_owner::Error::Mismatched`]
    /// is said where somebody else made that; [`Error::Exhausted`] where others may be shown no more.
    pub async fn open(
        &self,
        host: &dyn Host,
        query: &AskedQuery,
        answer: &[u8],
        wish: &Wish,
    ) -> Result<(OpenedAnswer, OwnerTimings)> {
        let known = self.known(wish.wanted.among.as_deref());
        self.open_known(host, query, answer, wish, known).await
    }

    async fn open_known(
        &self,
        host: &dyn Host,
        query: &AskedQuery,
        answer: &[u8],
        wish: &Wish,
        known: Known,
    ) -> Result<(OpenedAnswer, OwnerTimings)> {
        let opening = self.opening(host, query, wish, &known).await?;
        let options = OpenOptions {
            retrieval: opening.retrieval,
            selection: opening.selection.as_deref(),
            newer: &wish.newer,
            flood: opening.flood.as_deref(),
        };
        let opened = heavy(|| self.owner.open(&query.query, answer, &known.directory, options))?;
        let timings = opened.timings;
        Ok((self.opened(host, query, &opening, opened)?, timings))
    }

    /// What opens a server's answer as it comes; the rest is as in [`Self::open`]. With `local` it takes what
    /// [`ciphervec_owner::search::ServerIndex::evaluate_into`] writes in this process, an answer without a checksum, and nothing else.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn receiver(
        &self,
        host: &dyn Host,
        query: &AskedQuery,
        wish: &Wish,
        local: bool,
    ) -> Result<AnswerReceiver> {
        let known = self.known(wish.wanted.among.as_deref());
        self.receive_known(host, query, wish, known, local).await
    }

    async fn receive_known(
        &self,
        host: &dyn Host,
        query: &AskedQuery,
        wish: &Wish,
        known: Known,
        local: bool,
    ) -> Result<AnswerReceiver> {
        let opening = self.opening(host, query, wish, &known).await?;
        Ok(AnswerReceiver::new(&self.owner, &query.query, known.directory, opening, local))
    }

    /// What an [`AnswerReceiver`] has opened, once all of the answer was written to it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn finish(
        &self,
        host: &dyn Host,
        query: &AskedQuery,
        receiver: &AnswerReceiver,
    ) -> Result<(OpenedAnswer, OwnerTimings)> {
        let opened = receiver.finish()?;
        let timings = opened.timings;
        Ok((self.opened(host, query, receiver.opening(), opened)?, timings))
    }

    /// What answers are opened by, as it is now, and the places of these ids in it.
    fn known(&self, among: Option<&[Id]>) -> Known {
        let directory = self.read();
        let selection = among.map(|names| Arc::new(directory.select(names)));
        Known { directory: directory.snapshot(), live: directory.len(), selection }
    }

    async fn opening(
        &self,
        host: &dyn Host,
        query: &AskedQuery,
        wish: &Wish,
        known: &Known,
    ) -> Result<Opening> {
        let selection = known.selection.clone();
        let Wish { wanted, audience, flooding, .. } = wish;
        let others = *audience == Some(Audience::Others);
        let mut flood = None;
        if others && self.is_noisy() {
            check_deviation(*flooding)?;
            if !host.counts() {
                return Err(uncounted());
            }
            let asked = (query.query(), query.epoch);
            let view = self.view(&known.directory);
            let counted = view.flood(host, *flooding, asked, selection.as_deref()).await?;
            flood = Some(Arc::new(counted));
        }
        let metric = self.owner.spec().metric();
        let retrieval = match flood {
            Some(_) => retrieval(metric, wanted.count, wanted.within, known.live),
            None => asked_of(metric, wanted, known.live),
        };
        Ok(Opening { retrieval, count: wanted.count, selection, flood, others })
    }

    fn opened(
        &self,
        host: &dyn Host,
        query: &AskedQuery,
        opening: &Opening,
        opened: Opened,
    ) -> Result<OpenedAnswer> {
        let Opened { hits, exact, checked, disqualified, .. } = opened;
        if opening.others && !exact && !self.is_noisy() {
            return self.view(&self.read()).refuse_outdated();
        }
        if !query.foreign {
            self.pass_over(host, &disqualified)?;
        }
        let metric = self.owner.spec().metric();
        let hits = hits.into_iter();
        let hits = hits.map(|hits| ranked(metric, hits, opening.count, exact, checked).into());
        let owners_only = !exact || self.is_noisy();
        Ok(OpenedAnswer { hits: hits.collect(), exact, checked, owners_only, disqualified })
    }

    /// Leaves writers' segments out from now on that failed their check in an answer.
    fn pass_over(&self, host: &dyn Host, segments: &[SegmentId]) -> Result<()> {
        if segments.is_empty() {
            return Ok(());
        }
        let mut directory = self.write();
        for id in segments {
            directory.quarantine(*id);
        }
        for id in segments {
            host.warn(&self.view(&directory).passed_over(*id));
        }
        host.check()
    }

    /// Whether scores carry noise of a key whatever the segments are.
    fn is_noisy(&self) -> bool {
        matches!(self.owner.spec().mode(), Mode::Sealed | Mode::SealedQuery)
    }
}
