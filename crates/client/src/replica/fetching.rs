//! How rows that were found are read: in private, so that a server does not learn which they are, row by row, or by their segments.
//!
//! Of a private fetch a server sees the table, the class of how many rows there may be at most, and the time. What is sent does not depend
//! on the rows, nor on how many there are below that bound, nor on what failed: everything is sent before anything is opened.

use std::collections::HashMap;
use std::sync::Arc;

use ciphervec_owner::fetch::{Asked, FetchSession, FetchedRows, MAX_FETCHED, sealed_row};
use ciphervec_owner::protect::aead::EnvelopeError;
use ciphervec_owner::protect::records::{HEAD_START, Place, head_len, open_record, record_lens};
use ciphervec_owner::search::SegmentRootKey;
use ciphervec_owner::{Error as SchemeError, Id, KeyId, SegmentId};

use crate::belief::fetch_book::Failures;
use crate::change::{ORIGINALS, RECORDS, ROWS, StoredSegment};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::records::record::Record;
use crate::replica::Replica;
use crate::replica::fetch::Fetch;
use crate::replica::fetches::{Part, PrivateFetch, PrivateTable, Table};
use crate::replica::read::Vectors;
use crate::store::{FetchOffer, Fetched, Fetching, LARGEST, Offered};

/// Most rows that are fetched in private at once.
pub const MOST_PRIVATE: usize = 100;
/// Seconds below which rows are fetched in private without being told to.
const SOON: f64 = 1.0;
/// Bytes below which all rows are read instead, without being told to: keys of private fetches alone take most of that.
const LITTLE: u64 = 1 << 20;
/// Servers behind one address may each have to be given the keys.
const SENDS: usize = 4;
/// Bytes of an answer to a fetch of a polynomial, and beside them, at most.
const LAYER: usize = 24 << 10;

/// How rows are read, decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Segments,
    Rows,
    /// All that there are, whichever are wanted.
    All,
    /// As if there were so many.
    Private(usize),
}

/// Messages for as many rows as that at most, and rows of each.
fn messages(bound: usize) -> (usize, usize) {
    match bound {
        0 | 1 => (1, 1),
        ..=MAX_FETCHED => (1, MAX_FETCHED),
        _ => (MOST_PRIVATE / MAX_FETCHED, MAX_FETCHED),
    }
}

impl FetchOffer {
    fn seconds_of(&self, bound: usize) -> f64 {
        match messages(bound) {
            (_, 1) => self.seconds[0],
            (count, _) => count as f64 * self.seconds[1],
        }
    }
}

impl Replica {
    /// How to read rows of which there are `bound` at most.
    ///
    /// # Errors
    /// [`Error::Input`] where they would have to be fetched in private and are not, with what else would show what.
    pub async fn way(
        &mut self,
        host: &dyn Host,
        fetch: Fetch,
        (records, vectors): (bool, bool),
        bound: usize,
    ) -> Result<Way> {
        let nothing = !records && !vectors || self.directory.is_empty();
        let hides = self.description.encrypts_queries();
        if nothing || self.store.fetching().is_none() {
            return Ok(Way::Segments);
        }
        // What the client was made with.
        let fetch = if fetch == Fetch::Auto { self.fetch } else { fetch };
        match fetch {
            Fetch::Segments => return Ok(Way::Segments),
            Fetch::Collection => {
                if records {
                    self.cover(host).await?;
                }
                let kept = !records || self.holds(host, true, false).await?;
                return Ok(if kept { Way::Segments } else { Way::All });
            }
            // What is routed shows the clusters that its hits are among.
            Fetch::Auto if !hides || self.description.routing.is_some() && !self.is_oblivious() => {
                return Ok(Way::Segments);
            }
            Fetch::Rows if self.bundled().is_some() => {
                return Error::input(format!(
                    "{} is routed, and keeps the records of a cluster as one: its rows can't be read one by one. Read them with fetch \
                     \"segments\".",
                    self.name()
                ));
            }
            Fetch::Rows => return Ok(Way::Rows),
            // Nothing is asked for then.
            Fetch::Auto if self.holds(host, records, vectors).await? => return Ok(Way::Segments),
            Fetch::Auto if self.is_little(records, vectors) => return Ok(Way::All),
            Fetch::Auto | Fetch::Private => {}
        }
        match self.seconds(host, (records, vectors), bound).await? {
            Ok(seconds) if fetch == Fetch::Private || seconds < SOON => Ok(Way::Private(bound)),
            Ok(seconds) => self.refuse_private(&format!("would take about {seconds:.1} s")),
            Err(why) => self.refuse_private(&format!("is not possible: {why}")),
        }
    }

    /// The blobs that records and vectors of all rows are read from, and their bytes; none where a token may not read them.
    fn blobs_of_all(
        &self,
        records: bool,
        vectors: bool,
    ) -> Option<Vec<(SegmentId, &'static str, u64)>> {
        let mut all = Vec::new();
        for one in self.read_entries() {
            if one.blobs.is_empty() {
                return None;
            }
            let vectors = vectors.then(|| self.vectors_of(&one));
            let wanted = records.then_some(RECORDS).into_iter().chain(vectors);
            all.extend(wanted.filter_map(|blob| Some((one.id, blob, *one.blobs.get(blob)?))));
        }
        Some(all)
    }

    /// Whether all of it is kept here.
    pub(super) async fn holds(
        &self,
        host: &dyn Host,
        records: bool,
        vectors: bool,
    ) -> Result<bool> {
        let Some(all) = self.blobs_of_all(records, vectors) else { return Ok(false) };
        match self.store.fetching() {
            Some(fetching) => fetching.holds(host, &all).await,
            None => Ok(true),
        }
    }

    /// Whether all rows, of which so much is wanted, are few enough bytes to be read at once. It depends on no row.
    pub(super) fn is_little(&self, records: bool, vectors: bool) -> bool {
        if vectors && !self.directory.quarantined().is_empty() {
            return false; // some may not open
        }
        let all = self.blobs_of_all(records, vectors);
        all.is_some_and(|all| {
            all.iter().fold(0u64, |sum, (.., bytes)| sum.saturating_add(*bytes)) <= LITTLE
        })
    }

    /// The blob that a segment's vectors are read from.
    fn vectors_of(&self, segment: &StoredSegment) -> &'static str {
        let kept = segment.has(ORIGINALS) && self.writer(segment.id).is_none();
        if kept { ORIGINALS } else { ROWS }
    }

    /// Records and vectors of these rows, by reading those of all.
    pub async fn read_whole(
        &mut self,
        host: &dyn Host,
        ids: &[Id],
        (records, vectors): (bool, bool),
    ) -> Result<(Vec<Arc<[u8]>>, Option<Vectors>)> {
        let all: Vec<Id> = self.directory.records().map(|(id, ..)| id.clone()).collect();
        let places: HashMap<&Id, usize> = all.iter().zip(0..).collect();
        let at = |id: &Id| places.get(id).copied().ok_or_else(|| self.too_fast());
        let wanted: Vec<usize> = ids.iter().map(at).collect::<Result<_>>()?;
        for blob in blobs(records, vectors) {
            let mut entries = self.read_entries();
            entries.retain(|one| one.has(blob));
            Arc::clone(&self.store).prefetch(host, &entries, blob).await?;
        }
        let mut found = Vec::new();
        if records {
            let read = self.read_records(host, &all).await?;
            found = wanted.iter().map(|&at| Arc::clone(&read[at])).collect();
        }
        if !vectors {
            return Ok((found, None));
        }
        let read = self.read_vectors(host, &all).await?;
        let dimension = self.description.spec.dimension();
        let rows = wanted.iter().flat_map(|at| &read.rows[at * dimension..][..dimension]);
        let original = wanted.iter().map(|&at| read.original[at]).collect();
        let matrices = wanted.iter().filter_map(|&at| read.matrices.get(at).cloned()).collect();
        Ok((found, Some(Vectors { rows: rows.copied().collect(), original, matrices })))
    }

    /// Reads the records of every segment, as far as they are not kept here.
    pub async fn cover(&mut self, host: &dyn Host) -> Result<()> {
        let (store, version) = (Arc::clone(&self.store), self.store.listing().version);
        if self.covered == Some(version) || store.fetching().is_none() {
            return Ok(());
        }
        let mut entries = self.entries();
        entries.retain(|one| one.has(RECORDS));
        store.prefetch(host, &entries, RECORDS).await?;
        for segment in &entries {
            store.read(host, segment.id, RECORDS).await?;
        }
        self.covered = Some(version);
        Ok(())
    }

    fn refuse_private<T>(&self, why: &str) -> Result<T> {
        Error::input(format!(
            "a private fetch of rows of {} {why}. Say what the server may see instead: fetch \"segments\" shows it which segments the rows \
             lie in, a row that was added alone exactly; fetch \"rows\" shows it which rows they are; fetch \"private\" shows neither, and \
             waits.",
            self.name()
        ))
    }

    /// What a private fetch is predicted to take; or why there is none. It depends on no row.
    async fn seconds(
        &mut self,
        host: &dyn Host,
        (records, vectors): (bool, bool),
        bound: usize,
    ) -> Result<core::result::Result<f64, String>> {
        self.fetches.book.reload(host).await?;
        let Failures { count, ended } = self.fetches.book.failures();
        if ended {
            return Ok(Err(format!(
                "a record that came by one was not what its writer sealed ({count} so far), and whoever changes records can see which of \
                 them are asked for. Find out what happened first, then go on with {}()",
                self.face.named("resume_private_fetch")
            )));
        }
        if bound > MOST_PRIVATE {
            return Ok(Err(format!("{bound} rows are asked for, of {MOST_PRIVATE} at most")));
        }
        let unkept = |one: &Arc<StoredSegment>| self.vectors_of(one) == ROWS;
        if vectors && self.read_entries().iter().any(unkept) {
            return Ok(Err(
                "vectors as they were put in are not kept of all rows, and others come of their whole segment".to_owned(),
            ));
        }
        let mut seconds = 0.0;
        for blob in blobs(records, vectors) {
            match self.fetch_table(host, blob).await? {
                Ok(table) => seconds += table.offer.seconds_of(bound),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(seconds))
    }

    /// Why rows of this collection are in no table, if it is because clusters keep their records as one.
    fn bundled(&self) -> Option<&'static str> {
        let active = self.routing.table.as_ref().and_then(|table| table.active.as_ref());
        match self.description.routing.as_ref()? {
            routing if !routing.oblivious => Some(
                "it is routed, and keeps the records of a cluster as one: its queries name clusters to the server anyway, which oblivious \
                 routing does not",
            ),
            _ if active.is_some_and(|active| !active.apart) => Some(
                "it is routed, and keeps the records of a cluster as one, as releases before this one did, or because they are too long to \
                 be fetched; where they are not, recluster() seals each by itself",
            ),
            _ => None,
        }
    }

    /// The table of a blob in the present state; or why there is none.
    async fn fetch_table(
        &mut self,
        host: &dyn Host,
        blob: &'static str,
    ) -> Result<core::result::Result<Table, String>> {
        if let Some(why) = self.bundled() {
            return Ok(Err(why.to_owned()));
        }
        let segments = self.entries();
        let segments = segments.iter().map(|one| (one.id, one.rows));
        let rows = FetchedRows::new(&self.description.spec.binding(), blob, segments);
        let wrong = |error: SchemeError| {
            Error::server(format!(
                "the server of {} offers no table there is: {error}",
                self.name()
            ))
        };
        // Where long rows are is the server's word, as the lengths of places are: a wrong one opens nothing.
        let parted = |offer: &FetchOffer| rows.clone().with_long(offer.long_rows.clone());
        let known = self.fetches.offers.get(blob).cloned();
        let known = known.and_then(|offer| Some((parted(&offer).ok()?, offer)));
        let (rows, offer) = match known.filter(|(rows, offer)| offer.table == *rows.name()) {
            Some(known) => known,
            None => {
                let store = Arc::clone(&self.store);
                let Some(fetching) = store.fetching() else {
                    return Ok(Err("there is no server".to_owned()));
                };
                match fetching.offer(host, blob).await? {
                    Offered::Refused(why) => return Ok(Err(why)),
                    Offered::Table(offer) => {
                        let rows = parted(&offer).map_err(wrong)?;
                        if offer.table != *rows.name() {
                            return Err(self.too_fast());
                        }
                        (rows, offer)
                    }
                }
            }
        };
        let shape = rows.shape(offer.place_bytes).map_err(wrong)?;
        let long = rows.long_shape(offer.long_place_bytes).map_err(wrong)?;
        self.fetches.offers.insert(blob, offer.clone());
        Ok(Ok(Table { blob, rows, shape, long, offer }))
    }

    /// What there is to know of private fetches.
    pub async fn private_fetch(&mut self, host: &dyn Host) -> Result<PrivateFetch> {
        self.fetches.book.reload(host).await?;
        let records = self.fetch_table(host, RECORDS).await?.map(|table| PrivateTable {
            rows: table.rows.len(),
            place_bytes: table.offer.place_bytes,
            long_rows: table.rows.long().len(),
            long_place_bytes: table.offer.long_place_bytes,
            table_bytes: table.offer.table_bytes,
            seconds: table.offer.seconds[0],
            seconds_of_ten: table.offer.seconds[1],
        });
        let Failures { count: failures, ended } = self.fetches.book.failures();
        Ok(PrivateFetch { records, failures, ended })
    }

    /// Records of these rows, and the bytes of their vectors as they were put in, fetched as if they were `bound`.
    pub async fn fetch_private(
        &mut self,
        host: &dyn Host,
        ids: &[Id],
        (records, vectors): (bool, bool),
        bound: usize,
    ) -> Result<(Vec<Arc<[u8]>>, Vec<Arc<[u8]>>)> {
        let places = self.view().places(ids)?;
        let (count, each) = messages(bound.max(ids.len()));
        let mut tables = Vec::new();
        for blob in blobs(records, vectors) {
            let table =
                self.fetch_table(host, blob).await?.or_else(|why| self.refuse_private(&why))?;
            tables.push(table);
        }
        let parts: Vec<Part<'_>> = tables.iter().flat_map(Table::parts).collect();
        let (key, mut session) = self.session(host, count * parts.len()).await?;
        let asked = self.ask_all(host, &mut session, &parts, &places, (count, each)).await;
        let answers = match asked {
            Ok(answers) => answers,
            Err(error) => {
                // A server may have made other tables of the same rows since.
                self.fetches.offers.clear();
                self.fetches.session = Some((key, session));
                return Err(error);
            }
        };
        self.expect_unbroken(host).await?; // others may have failed meanwhile
        let opened =
            self.open_fetched(&mut session, &tables, (count, each), &places, ids, &answers);
        let Ok(opened) = opened else {
            // The session ends with it. Nothing is sent that would not be otherwise.
            let book = &self.fetches.book;
            if let Err(error) = book.end(host).await {
                host.warn(&format!("that private fetches end could not be written down: {error}"));
            }
            return Err(Error::FetchEnded(format!(
                "a record of {} that came by a private fetch is not what its writer sealed: the server answers wrongly, or what it stores is \
                 damaged. None is tried again, as that would show which it is. Nothing more is fetched in private until {}() is called.",
                self.name(),
                self.face.named("resume_private_fetch")
            )));
        };
        self.fetches.session = Some((key, session));
        let mut opened = opened.into_iter();
        let found = if records { opened.next().unwrap_or_default() } else { Vec::new() };
        let kept = if vectors { opened.next().unwrap_or_default() } else { Vec::new() };
        if let Some((_, id)) = kept.iter().zip(ids).find(|(bytes, _)| bytes.is_empty()) {
            return self.refuse_private(&format!(
                "does not give the vector of id {}, which was not kept as it was put in",
                crate::view::shown(id)
            ));
        }
        Ok((found, kept))
    }

    /// A session whose keys the server was given, for so many queries.
    async fn session(
        &mut self,
        host: &dyn Host,
        queries: usize,
    ) -> Result<((KeyId, u64), FetchSession)> {
        let key = (self.owner.key_id(), host.process());
        let known = self.fetches.session.take();
        if let Some(known) = known.filter(|(of, session)| *of == key && session.serves(queries)) {
            return Ok(known);
        }
        let keys = self.present_keys()?;
        let session = FetchSession::begin(&keys, &self.description.spec.binding())?;
        let store = Arc::clone(&self.store);
        if let Some(fetching) = store.fetching() {
            fetching.bring_keys(host, session.evaluation_keys()).await?;
        }
        Ok((key, session))
    }

    /// Sends all there is to send, and keeps what comes.
    async fn ask_all(
        &self,
        host: &dyn Host,
        session: &mut FetchSession,
        parts: &[Part<'_>],
        places: &[(SegmentId, u32)],
        (count, each): (usize, usize),
    ) -> Result<Vec<(Asked, Vec<u8>)>> {
        let store = Arc::clone(&self.store);
        let Some(fetching) = store.fetching() else { return Err(self.too_fast()) };
        let mut answers = Vec::with_capacity(parts.len() * count);
        for part in parts {
            // Of rows that are in the other table, what fills up is asked for.
            let place = |(segment, row): &(SegmentId, u32)| {
                let first = part.of.rows.place(*segment, *row).ok_or_else(|| self.too_fast())?;
                Ok(part.place(first).unwrap_or(0))
            };
            let wanted: Vec<_> = places.iter().map(place).collect::<Result<_>>()?;
            for message in 0..count {
                let wanted = wanted.chunks(each).nth(message).unwrap_or_default();
                let (asked, query) = session.ask(part.shape, wanted, each)?;
                let answer = self.answer(host, fetching, session, part, (&query, each)).await?;
                answers.push((asked, answer));
            }
        }
        Ok(answers)
    }

    async fn answer(
        &self,
        host: &dyn Host,
        fetching: &dyn Fetching,
        session: &FetchSession,
        part: &Part<'_>,
        (query, each): (&[u8], usize),
    ) -> Result<Vec<u8>> {
        let most = LAYER * (each * part.shape.layers() + 1);
        for _ in 0..SENDS {
            match fetching.fetch(host, part.of.blob, part.shape.name(), query, most).await? {
                Fetched::Answer(answer) => return Ok(answer),
                Fetched::KeysMissing => {
                    fetching.bring_keys(host, session.evaluation_keys()).await?;
                }
            }
        }
        Err(Error::server(format!(
            "the server of {} says that it lacks fetch keys that it was given {SENDS} times. Ask its operator: its memory may be too small \
             for them, or several servers answer under one address.",
            self.name()
        )))
    }

    /// What came, of each blob; an error, which says nothing, where anything is wrong.
    fn open_fetched(
        &self,
        session: &mut FetchSession,
        tables: &[Table],
        (count, each): (usize, usize),
        places: &[(SegmentId, u32)],
        ids: &[Id],
        answers: &[(Asked, Vec<u8>)],
    ) -> core::result::Result<Vec<Vec<Arc<[u8]>>>, SchemeError> {
        let listing = self.store.listing();
        let binding = self.description.spec.binding();
        let mut opened: Vec<Vec<Arc<[u8]>>> = Vec::with_capacity(tables.len());
        // What fills up is opened like the others, and fails unseen.
        let filler = (SegmentId([0; 16]), 0);
        let nobody = Id::from(0);
        let mut failed = None;
        let parts = tables.iter().flat_map(Table::parts);
        for (part, answers) in parts.zip(answers.chunks(count)) {
            let (table, mut found) = (part.of, Vec::with_capacity(ids.len()));
            for (message, (asked, answer)) in answers.iter().enumerate() {
                let row = |at: usize, bytes: &[u8]| -> Option<Arc<[u8]>> {
                    let at = message * each + at;
                    let (segment, row) = *places.get(at).unwrap_or(&filler);
                    let stored = listing.segments.get(&segment);
                    if stored.is_some_and(|stored| !stored.may_have(table.blob)) {
                        return Some(Arc::from([]));
                    }
                    let place = Place { collection: &binding, segment: &segment.0 };
                    let root = self.directory.root(segment);
                    let aead =
                        root.map_or_else(|| self.owner.aead(), |root| SegmentRootKey::aead(root));
                    let id = ids.get(at).unwrap_or(&nobody);
                    let open = || {
                        let sealed = open_record(aead, place, id, row, sealed_row(bytes)?).ok()?;
                        let record = self.own(segment, &sealed).ok()?;
                        // A writer who seals what is no record sees its readers fail as well.
                        let reads = match table.blob {
                            ORIGINALS => self.description.keeps(record),
                            _ => Record::read(record).is_ok(),
                        };
                        reads.then(|| Arc::from(record))
                    };
                    let opened = open();
                    // What fills up for a row of the other table fails unseen too.
                    let first = table.rows.place(segment, row);
                    let elsewhere = first.is_some_and(|first| part.place(first).is_none());
                    if elsewhere { Some(Arc::from([])) } else { opened }
                };
                match session.open_with(asked, answer, row) {
                    Ok(rows) => found.extend(rows),
                    Err(error) => failed = Some(error),
                }
            }
            match opened.last_mut().filter(|_| part.long) {
                None => opened.push(found),
                // Each row was in one of both.
                Some(of_first) => {
                    for (first, found) in of_first.iter_mut().zip(found) {
                        if first.is_empty() {
                            *first = found;
                        }
                    }
                }
            }
        }
        failed.map_or(Ok(opened), Err)
    }

    /// Records of these rows, each asked for by itself.
    pub async fn fetch_rows(&mut self, host: &dyn Host, ids: &[Id]) -> Result<Vec<Arc<[u8]>>> {
        let store = Arc::clone(&self.store);
        let Some(fetching) = store.fetching() else { return self.read_records(host, ids).await };
        let (listing, binding) = (self.store.listing(), self.description.spec.binding());
        let mut heads: HashMap<SegmentId, (u64, Vec<u64>)> = HashMap::new();
        let mut found = Vec::with_capacity(ids.len());
        for ((segment, row), id) in self.view().places(ids)?.into_iter().zip(ids) {
            let Some(one) = listing.segments.get(&segment).filter(|one| one.may_have(RECORDS))
            else {
                found.push(Arc::from([]));
                continue;
            };
            let stored = one.blobs.get(RECORDS).copied().unwrap_or(LARGEST);
            let blob = (segment, RECORDS);
            let read = |error| SchemeError::from(EnvelopeError::from(error));
            if let std::collections::hash_map::Entry::Vacant(head) = heads.entry(segment) {
                let start = fetching.part(host, blob, 0, HEAD_START as u64).await?;
                let length = (head_len(&start).map_err(read)? as u64).min(stored);
                let bytes = fetching.part(host, blob, 0, length).await?;
                head.insert((length, record_lens(&bytes).map_err(read)?));
            }
            let (length, lens) = &heads[&segment];
            let Some(&this) = lens.get(row as usize) else {
                return Error::corrupt(format!(
                    "the sealed records of this segment have no row {row}"
                ));
            };
            let from = lens[..row as usize].iter().fold(*length, |at, one| at.saturating_add(*one));
            if from.saturating_add(this) > stored {
                return Error::corrupt(format!(
                    "the sealed records of this segment end before its row {row}"
                ));
            }
            let sealed = fetching.part(host, blob, from, this).await?;
            let place = Place { collection: &binding, segment: &segment.0 };
            let root = self.directory.root(segment);
            let aead = root.map_or_else(|| self.owner.aead(), |root| SegmentRootKey::aead(root));
            let record =
                open_record(aead, place, id, row, &sealed).map_err(SchemeError::Envelope)?;
            found.push(Arc::from(self.own(segment, &record)?));
        }
        Ok(found)
    }
}

/// What is fetched, for metadata and documents, and for vectors.
fn blobs(records: bool, vectors: bool) -> impl Iterator<Item = &'static str> {
    [records.then_some(RECORDS), vectors.then_some(ORIGINALS)].into_iter().flatten()
}
