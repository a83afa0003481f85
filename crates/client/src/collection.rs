//! A collection: rows go in, hits come out. Every call runs alone, but for the time that a query is on its way.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use async_lock::Mutex;
use ciphervec_owner::{Id, IndexSpec};

use crate::belief::choices::Choices;
use crate::belief::description::Description;
use crate::clusters::choice::Clusters;
use crate::error::{Error, Result};
use crate::face::Face;
use crate::host::Host;
use crate::noting::Noting;
use crate::records::muvera::{Encoder, Muvera};
use crate::records::sparse::Sparse;
use crate::replica::alone::Alone;
use crate::replica::batch::{Batch, Records, changed, check_rows, distinct};
use crate::replica::fetch::Fetch;
use crate::replica::late::encoded;
use crate::replica::overlay::{Changes, Known, Unknown, say_stale};
use crate::replica::prefetch::prefetch;
use crate::replica::recluster::{Clustered, recluster};
use crate::replica::request::{Audience, GetResult, Parts, Selection};
use crate::replica::rows::{filter_of, rows_of, select};
use crate::replica::{PATIENCE, Replica};
use crate::view::flooding::FloodingPlan;

/// One collection. Asked from several threads, it answers one after the other but for what a server does meanwhile.
pub struct Collection {
    replica: Mutex<Replica>,
    spec: IndexSpec,
    /// As they were seen last.
    settings: std::sync::Mutex<Settings>,
    routing: Option<Clusters>,
    pub(crate) multi: Option<Arc<Encoder>>,
}

/// What of a collection may change, by its description.
#[derive(Clone)]
struct Settings {
    filterable: Vec<String>,
    originals: bool,
    sparse: Option<Sparse>,
}

impl Settings {
    fn of(described: &Description) -> Self {
        Settings {
            filterable: described.filterable.clone(),
            originals: described.originals,
            sparse: described.sparse,
        }
    }
}

impl Collection {
    pub(crate) fn new(replica: Replica) -> Self {
        let described = &replica.description;
        let (spec, settings) = (described.spec.clone(), Settings::of(described));
        let (routing, multi) = (described.routing.clone(), described.multi.clone());
        Collection { spec, settings: settings.into(), routing, multi, replica: Mutex::new(replica) }
    }

    /// What the index is.
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    pub(crate) async fn alone(&self, host: &dyn Host) -> Result<Alone<'_>> {
        host.check()?;
        let mut alone = Alone::new(&self.replica).await;
        alone.settle(host).await?;
        Ok(alone)
    }

    /// While a call goes on they are what they were before.
    fn seen(&self) -> Settings {
        let mut known = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(replica) = self.replica.try_lock() {
            *known = Settings::of(&replica.description);
        }
        known.clone()
    }

    /// Fields whose equality a server may test by keyed tags, and whether vectors are kept as they were put in, as far as is known here.
    pub fn settings(&self) -> (Vec<String>, bool) {
        let Settings { filterable, originals, .. } = self.seen();
        (filterable, originals)
    }

    /// How its rows are put in clusters, which queries ask about.
    pub fn routing(&self) -> Option<&Clusters> {
        self.routing.as_ref()
    }

    /// What its rows are ranked by beside their vectors, as far as is known here.
    pub fn sparse(&self) -> Option<Sparse> {
        self.seen().sparse
    }

    /// How the many vectors of a row become the one that is searched, where rows have many.
    pub fn multi(&self) -> Option<Muvera> {
        self.multi.as_ref().map(|multi| multi.muvera())
    }

    /// That it takes the sparse vectors of these rows, if they have some.
    fn check_sparse(&self, rows: &Records) -> Result<()> {
        if rows.sparse.iter().all(Option::is_none) || self.sparse() == Some(Sparse::Vectors) {
            return Ok(());
        }
        Error::input(
            "sparse_embeddings are for collections that are made with sparse vectors; nothing was written.",
        )
    }

    /// That it was chosen so.
    ///
    /// # Errors
    /// [`Error::Input`] naming what is otherwise.
    pub async fn check_choices(&self, face: Face, choices: &Choices) -> Result<()> {
        Alone::new(&self.replica).await.description.check_choices(face, choices)
    }

    /// Seals and stores new rows; their ids.
    ///
    /// # Errors
    /// [`Error::Rows`] naming all that is wrong, [`Error::DuplicateId`] for an id that is here; nothing was written then.
    pub async fn add(&self, host: &dyn Host, rows: Records) -> Result<Vec<Id>> {
        let noting = Noting::of(host, "add", self.spec.collection());
        self.check_sparse(&rows)?;
        let (rows, matrices) = encoded(self.multi.as_deref(), rows)?;
        let rows = rows.without_zeros(host, &self.spec);
        let mut batch = Batch::new(rows, matrices, self.spec.dimension(), self.spec.metric())?;
        let mut alone = self.alone(host).await?;
        alone.see(host, &batch.rows)?;
        let replica: &mut Replica = &mut alone;
        let write = async |replica: &mut Replica| {
            replica.view().refuse_known(&batch.ids)?;
            replica.write(host, &mut batch, &[]).await
        };
        replica.in_turn(host, write).await?;
        noting.done(batch.ids.len());
        Ok(batch.ids)
    }

    /// As [`Self::add`], but a row whose id is here is replaced.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub async fn upsert(&self, host: &dyn Host, rows: Records) -> Result<Vec<Id>> {
        let noting = Noting::of(host, "upsert", self.spec.collection());
        self.check_sparse(&rows)?;
        let (rows, matrices) = encoded(self.multi.as_deref(), rows)?;
        let rows = rows.without_zeros(host, &self.spec);
        let mut batch = Batch::new(rows, matrices, self.spec.dimension(), self.spec.metric())?;
        let mut alone = self.alone(host).await?;
        alone.see(host, &batch.rows)?;
        let write = async |replica: &mut Replica| {
            let known =
                batch.ids.iter().filter(|id| replica.directory.locate(id).is_some()).cloned();
            let known: Vec<_> = known.collect();
            replica.write(host, &mut batch, &known).await
        };
        alone.in_turn(host, write).await?;
        noting.done(batch.ids.len());
        Ok(batch.ids)
    }

    /// Changes rows that are here: fields of metadata are laid over those there are, and those in `removed` go before. Vectors are given
    /// of all rows, of none, or of those that `there` marks.
    ///
    /// # Errors
    /// [`Error::UnknownId`], [`Error::Rows`]; nothing was changed then.
    pub async fn update(
        &self,
        host: &dyn Host,
        rows: Records,
        there: Option<Vec<bool>>,
        removed: &[String],
    ) -> Result<()> {
        let noting = Noting::of(host, "update", self.spec.collection());
        self.check_sparse(&rows)?;
        let dimension = self.spec.dimension();
        let rows = encoded(self.multi.as_deref(), rows)?;
        let rows = Changes::new(rows, there, dimension, self.spec.metric())?;
        let (Changes { ids, embeddings, matrices, there, .. }, changes) = (&rows, rows.beside()?);
        distinct(ids)?;
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        let stored: Vec<_> =
            ids.iter().zip(there).filter(|(_, there)| !**there).map(|(id, _)| id.clone()).collect();
        let change = async |replica: &mut Replica| {
            let old = replica.read_records(host, ids).await?;
            let kept = replica.read_vectors(host, &stored).await?;
            let laid = old.iter().zip(&changes);
            let records = laid.map(|(old, beside)| changed(old, *beside, removed));
            let records = records.collect::<Result<Vec<_>>>()?;
            let pairs = old.iter().zip(&records).zip(there).filter(|(_, there)| !**there);
            say_stale(host, pairs.map(|((old, new), _)| (&**old, &**new)))?;
            let (mut given, mut read) =
                (embeddings.chunks_exact(dimension), kept.rows.chunks_exact(dimension));
            let mut original = kept.original.into_iter();
            let (mut new, mut old) = (matrices.iter(), kept.matrices.iter());
            let mut batch = Batch { ids: ids.clone(), records, ..Batch::default() };
            let mut as_given = Vec::with_capacity(ids.len());
            for there in there {
                let vector = if *there { given.next() } else { read.next() };
                batch.rows.extend_from_slice(vector.unwrap_or_default());
                let matrix = if *there { new.next() } else { old.next() };
                batch.matrices.extend(matrix.cloned());
                as_given.push(*there || original.next().unwrap_or(false));
            }
            batch.original = Some(as_given);
            replica.write(host, &mut batch, ids).await
        };
        alone.in_turn(host, change).await?;
        noting.done(ids.len());
        Ok(())
    }

    /// Adds the rows that are not here and lays the others over what is here, in one commit; how many were written. Of a row that is
    /// here, given fields of metadata are laid over the old ones, a null takes its field away, and a document or vector replaces.
    /// Vectors are given as to [`Self::update`]. An id that comes twice counts as two changes, one after the other.
    ///
    /// # Errors
    /// [`Error::Rows`]; [`Error::Input`] for a new row without a vector. Nothing was changed then.
    pub async fn merge(
        &self,
        host: &dyn Host,
        rows: Records,
        there: Option<Vec<bool>>,
        known: Known,
        unknown: Unknown,
    ) -> Result<usize> {
        let noting = Noting::of(host, "merge", self.spec.collection());
        self.check_sparse(&rows)?;
        let rows = encoded(self.multi.as_deref(), rows)?;
        let rows = Changes::new(rows, there, self.spec.dimension(), self.spec.metric())?;
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        alone.see(host, &rows.embeddings)?;
        let lay = async |replica: &mut Replica| replica.overlay(host, &rows, known, unknown).await;
        let count = alone.in_turn(host, lay).await?;
        noting.done(count);
        Ok(count)
    }

    /// Deletes rows by id, by filter, or both; how many. Ids that are not here are an error unless `missing_ok`.
    ///
    /// # Errors
    /// [`Error::UnknownId`], [`Error::Input`]; nothing was deleted then.
    pub async fn delete(
        &self,
        host: &dyn Host,
        which: &Selection,
        missing_ok: bool,
    ) -> Result<usize> {
        let noting = Noting::of(host, "delete", self.spec.collection());
        let mut alone = self.alone(host).await?;
        let filter = filter_of(&alone, which)?;
        if which.ids.is_none() && filter.is_none() {
            return Error::input(
                "delete() needs ids or a filter; to drop everything delete the collection.",
            );
        }
        alone.refresh(host).await?;
        let names = which.ids.as_ref().map(|ids| each_once(ids));
        let delete = async |replica: &mut Replica| {
            let mut there = names.clone();
            match &mut there {
                Some(names) if missing_ok => {
                    names.retain(|id| replica.directory.locate(id).is_some())
                }
                Some(names) => drop(replica.view().places(names)?),
                None => {}
            }
            let passing = select(replica, host, there, filter.as_ref(), usize::MAX).await?;
            replica.remove(host, &passing).await?;
            Ok(passing.len())
        };
        let count = alone.in_turn(host, delete).await?;
        noting.done(count);
        Ok(count)
    }

    /// Rows by id, by filter, or all of them: from the `offset`th on, at most `limit`. Ids that are not here are left out. Where neither
    /// ids nor a filter say which, they are read with their segments unless `parts` say otherwise.
    ///
    /// # Errors
    /// [`Error::Input`] for a filter that is none, for others where vectors carry noise of the key, and where rows would have to be fetched
    /// in private and can't be; [`Error::FetchEnded`] for a private fetch that failed.
    pub async fn get(
        &self,
        host: &dyn Host,
        which: &Selection,
        parts: Parts,
        offset: usize,
        limit: Option<usize>,
        audience: Option<Audience>,
    ) -> Result<GetResult> {
        let noting = Noting::of(host, "get", self.spec.collection());
        let mut alone = self.alone(host).await?;
        let filter = filter_of(&alone, which)?;
        let stop = limit.map_or(usize::MAX, |limit| offset.saturating_add(limit));
        alone.refresh(host).await?;
        let any = which.ids.is_none() && filter.is_none() && parts.fetch == Fetch::Auto;
        let parts = Parts { fetch: if any { Fetch::Segments } else { parts.fetch }, ..parts };
        let most = which.ids.as_ref().map(Vec::len).into_iter().chain(limit).min();
        let get = async |replica: &mut Replica| {
            let names = which.ids.as_ref().map(|ids| {
                ids.iter()
                    .filter(|id| replica.directory.locate(id).is_some())
                    .cloned()
                    .collect::<Vec<_>>()
            });
            let mut passing = select(replica, host, names, filter.as_ref(), stop).await?;
            passing.truncate(stop);
            passing.drain(..offset.min(passing.len()));
            let bound = most.unwrap_or(passing.len());
            rows_of(replica, host, passing, parts, bound).await
        };
        let found = alone.in_turn(host, get).await?;
        if found.owners_only && audience == Some(Audience::Others) {
            return alone.view().refuse_others("vectors");
        }
        noting.done(found.rows.len());
        Ok(found)
    }

    /// What queries for others cost in mode `sealed` with noise of this standard deviation in every score, a cosine, and how much of it is
    /// left.
    ///
    /// # Errors
    /// [`Error::Input`] in other modes, and for rows of writers that were not adopted.
    pub async fn flooding_plan(&self, host: &dyn Host, flooding: f64) -> Result<FloodingPlan> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        alone.flooding_plan(host, flooding).await
    }

    /// Fetches ahead, for so many questions more, the half of an answer that does not depend on what is asked; how many are held then.
    /// A question takes one by itself. Each serves once; they are held in memory alone, and are gone once anybody's commit has changed
    /// which segments there are.
    ///
    /// # Errors
    /// [`Error::Input`] where there is nothing to fetch ahead: in modes without, where rows are routed or none, of an older server.
    pub async fn prefetch(&self, host: &dyn Host, queries: usize) -> Result<usize> {
        let mut alone = self.alone(host).await?;
        let ends = host.now() + PATIENCE;
        loop {
            match prefetch(&mut alone, host, queries).await {
                Err(Error::Conflict(_)) if host.now() < ends => alone.refresh(host).await?,
                done => return done,
            }
        }
    }

    /// Puts every row of a routed collection into clusters, filled up to equally many rows. Rows that were added, changed or deleted
    /// since the last time are unrouted, and scanned by every query, until this is called. `questions` are what recall is measured
    /// with; without, it is a sample of the rows. A call that was interrupted is gone on with by the next. It holds all vectors and
    /// records in memory, and the store holds everything twice meanwhile.
    ///
    /// # Errors
    /// [`Error::Input`] for a collection that is not routed; [`Error::Conflict`] when another client clusters it at the same time.
    pub async fn recluster(
        &self,
        host: &dyn Host,
        mut questions: Option<Vec<f32>>,
    ) -> Result<Clustered> {
        let noting = Noting::of(host, "recluster", self.spec.collection());
        let (dimension, metric) = (self.spec.dimension(), self.spec.metric());
        let mut faults = Vec::new();
        if let Some(questions) = &mut questions {
            check_rows(questions, dimension, metric, "questions", &mut faults)?;
        }
        if !faults.is_empty() {
            return Err(Error::rows(faults));
        }
        let mut alone = self.alone(host).await?;
        let made = recluster(&mut alone, host, questions).await?;
        alone.traffic = None; // of what is no more
        noting.done(0);
        Ok(made)
    }

    /// Rows that are there, as far as this client has seen.
    ///
    /// # Errors
    /// What the store's state gives rise to.
    pub async fn count(&self, host: &dyn Host) -> Result<usize> {
        Ok(self.alone(host).await?.directory.len())
    }

    /// Which of these ids are there, as far as this client has seen.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn has(&self, host: &dyn Host, ids: &[Id]) -> Result<Vec<bool>> {
        let alone = self.alone(host).await?;
        Ok(ids.iter().map(|id| alone.directory.locate(id).is_some()).collect())
    }

    /// Takes in what others have committed.
    ///
    /// # Errors
    /// [`Error::RolledBack`] and others for a store that shows what its owner did not make.
    pub async fn refresh(&self, host: &dyn Host) -> Result<()> {
        self.alone(host).await?.refresh(host).await
    }

    /// What two people compare to know that they see one history.
    ///
    /// # Errors
    /// As [`Self::refresh`]; [`Error::Input`] in mode `open`.
    pub async fn checkpoint(&self, host: &dyn Host) -> Result<String> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        alone.states.checkpoint()
    }

    /// That the history of the collection has the state of this checkpoint.
    ///
    /// # Errors
    /// [`Error::RolledBack`] where it has not.
    pub async fn expect(&self, host: &dyn Host, checkpoint: &str) -> Result<()> {
        let mut alone = self.alone(host).await?;
        alone.refresh(host).await?;
        alone.states.expect(checkpoint)
    }

    /// The bytes of a card for somebody who may add rows and read none, and its fingerprint.
    ///
    /// # Errors
    /// [`Error::Input`] for a name that is none, and in modes without writers.
    pub async fn writer_card(&self, host: &dyn Host, writer: &str) -> Result<(Vec<u8>, String)> {
        if self.multi.is_some() {
            return Error::input(
                "rows of many vectors can't come from writers: that the matrix of a row is the one that is searched would be their word.",
            );
        }
        let alone = self.alone(host).await?;
        if alone.description.members.is_some() {
            return Error::input(format!(
                "{} has members, and rows count that they sign for. Add whoever writes as a member, by a card of keys member-card.",
                alone.name()
            ));
        }
        let card = alone.owner.writer_card_around(
            writer,
            &alone.description.filterable,
            alone.center(),
        )?;
        Ok((card.to_bytes(), card.fingerprint()))
    }
}

fn each_once(ids: &[Id]) -> Vec<Id> {
    let mut seen = HashSet::new();
    ids.iter().filter(|id| seen.insert(*id)).cloned().collect()
}
