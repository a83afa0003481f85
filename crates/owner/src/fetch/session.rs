//! An owner's half of private fetch: a session asks for records and opens them, until one fails. Owner only.
//!
//! A server that changes one record, and sees that a client complains, asks again or falls silent, learns whether that
//! record was asked for. So the first failure ends the session, and says the same whatever failed.

use super::record::{aead_key, open};
use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::protect::aead;
use ciphervec_he_secret::keys::MasterKey;
use ciphervec_he_secret::lattice::retrieval::{RetrievalAnswer, RetrievalKey, Shape};
use ciphervec_he_secret::lattice::ring::{Ring, SESSION_EPOCHS};
use std::sync::Arc;
use zeroize::Zeroizing;

/// How many records a query looks as if it fetched: the next of these.
const CLASSES: [usize; 2] = [1, MAX_FETCHED];
/// Most records of one query.
pub const MAX_FETCHED: usize = 10;
/// Queries under one key.
const QUERIES: usize = 1024;

/// Fetches of a client from the tables of one collection, whatever their states, under a key of its own.
pub struct FetchSession {
    ring: Ring,
    master: Arc<MasterKey>,
    key: RetrievalKey,
    evaluation: Vec<u8>,
    asked: usize,
    failed: bool,
}

/// The records that a query is about.
pub struct Asked {
    shape: Shape,
    places: Zeroizing<Vec<usize>>,
    wanted: usize,
}

impl core::fmt::Debug for Asked {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Asked({} records, redacted)", self.places.len())
    }
}

impl FetchSession {
    /// Begins a session about a collection, by the name that its keys are bound to.
    ///
    /// # Errors
    /// [`Error::Envelope`] if the system gives no randomness.
    pub fn begin(keys: &Keys, collection: &[u8]) -> Result<Self> {
        let mut epoch = [0; 4];
        aead::random(&mut epoch)?;
        let epoch = u32::from_le_bytes(epoch) | SESSION_EPOCHS;
        let ring = Ring::new()?;
        let master = Arc::clone(&keys.master);
        let key = RetrievalKey::derive(&ring, &master, collection, epoch);
        let evaluation = key.selector_keys(&ring, &master, collection).to_bytes();
        Ok(FetchSession { ring, master, key, evaluation, asked: 0, failed: false })
    }

    /// What the server answers with; the session's queries need it.
    pub fn evaluation_keys(&self) -> &[u8] {
        &self.evaluation
    }

    /// Asks for records by their places in a table of this shape, which is the owner's word, never a server's, as if they
    /// were `bound`. The bytes tell the server whether that is one, or up to [`MAX_FETCHED`].
    ///
    /// # Errors
    /// [`Error::Range`] for more records than the bound, one of 0 or above [`MAX_FETCHED`], or after 1,024 queries; [`Error::Scheme`] for a record
    /// that there is not; [`Error::FetchEnded`] after a failure.
    pub fn ask(
        &mut self,
        shape: &Shape,
        places: &[usize],
        bound: usize,
    ) -> Result<(Asked, Vec<u8>)> {
        let range = |what, expected: String, actual: usize| Error::Range {
            what,
            expected,
            actual: actual.to_string(),
        };
        if places.len() > bound {
            return Err(range("records of one fetch", format!("at most {bound}"), places.len()));
        }
        let class = CLASSES.into_iter().find(|class| (1..=*class).contains(&bound));
        let class = class
            .ok_or_else(|| range("the bound of one fetch", format!("1 to {MAX_FETCHED}"), bound))?;
        let mut padded = Zeroizing::new(Vec::with_capacity(class));
        padded.extend_from_slice(places);
        padded.resize(class, 0);
        let (asked, query) = self.ask_all(shape, padded)?;
        Ok((Asked { wanted: places.len(), ..asked }, query))
    }

    /// Asks for these records, all of which are wanted: their number shows.
    pub(crate) fn ask_all(
        &mut self,
        shape: &Shape,
        places: Zeroizing<Vec<usize>>,
    ) -> Result<(Asked, Vec<u8>)> {
        if self.failed {
            return Err(Error::FetchEnded);
        }
        if self.asked == QUERIES {
            return Err(Error::Range {
                what: "queries of a fetch session",
                expected: format!("at most {QUERIES}; begin another session"),
                actual: (self.asked + 1).to_string(),
            });
        }
        let query = self.key.ask(&self.ring, shape, &places)?;
        self.asked += 1;
        let wanted = places.len();
        Ok((Asked { shape: *shape, places, wanted }, query.to_bytes(shape)))
    }

    /// Whether so many queries more may be asked.
    pub fn serves(&self, queries: usize) -> bool {
        !self.failed && self.asked + queries <= QUERIES
    }

    /// The contents of the records that were asked for, in order.
    ///
    /// # Errors
    /// [`Error::Scheme`] for bytes that are no answer to a query of this session: these tell nothing of the records.
    /// [`Error::FetchEnded`] where a record is not what was sealed: nothing of the answer is returned, and nothing more is
    /// fetched.
    pub fn open(&mut self, asked: &Asked, answer: &[u8]) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        let aead = aead_key(&self.master, asked.shape.name());
        self.open_with(asked, answer, |at, sealed| {
            open(&aead, asked.shape.name(), asked.places[at], sealed)
        })
    }

    /// What `open` makes of the records that were asked for, in order; it is given the number of each among them, from 0 on,
    /// also of those that fill up, and says whether it is what was sealed.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with<T>(
        &mut self,
        asked: &Asked,
        answer: &[u8],
        open: impl Fn(usize, &[u8]) -> Option<T>,
    ) -> Result<Vec<T>> {
        if self.failed {
            return Err(Error::FetchEnded);
        }
        let shape = &asked.shape;
        let answer = RetrievalAnswer::from_bytes(answer, shape, asked.places.len())?;
        let sealed = self.key.open(&self.ring, shape, &asked.places, &answer)?;
        // All of them, in the same time however many are wanted; what fills up is not looked at.
        let opened: Vec<_> =
            sealed.iter().enumerate().map(|(at, sealed)| open(at, sealed)).collect();
        let wanted: Option<Vec<_>> = opened.into_iter().take(asked.wanted).collect();
        self.failed = wanted.is_none();
        wanted.ok_or(Error::FetchEnded)
    }
}
