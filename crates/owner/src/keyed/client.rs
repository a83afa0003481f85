//! Who looks up: asks for the buckets of keys, checks what comes, and finds the records in it, until a check fails.
//!
//! Every bucket that comes is checked against the description, those that fill a request up too: a server that changes an
//! answer learns nothing of how many keys were looked up, and one that changes a bucket whether that one was asked for, once.

use super::seal::{TableKeys, foreign};
use crate::error::{Error, Result};
use crate::fetch::{Asked, FetchSession};
use crate::keys::Keys;
use ciphervec::fetch::Shape;
use ciphervec::keyed::{Description, Digest, LookupKey};
use ciphervec_he_secret::lattice::retrieval::ANSWER_BYTES;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zeroize::Zeroizing;

/// How many keys a lookup looks as if it were of: the next of these, and whole hundreds above.
pub const LOOKUP_CLASSES: [usize; 3] = [1, 10, 100];
/// Keys of one query where a key has one place, and where it has more.
const TOGETHER: [usize; 2] = [10, 5];
/// Bytes of an answer that are no words: frame and head.
const ANSWER_HEAD: usize = 64 + 24;

/// A table as one client sees it, and the session in which it asks. Its key is drawn for the session: no other query is
/// known by it.
pub struct KeyedClient {
    description: Description,
    shape: Shape,
    /// Of tables that an owner sealed.
    sealed: Option<TableKeys>,
    session: Arc<Mutex<FetchSession>>,
    ended: bool,
}

/// What a lookup asked for.
pub struct AskedKeys {
    /// Those that were wanted, then those that fill up.
    digests: Vec<Digest>,
    wanted: usize,
    queries: Vec<Asked>,
    /// In which it asked: there may be another one by now.
    session: Arc<Mutex<FetchSession>>,
}

impl AskedKeys {
    /// What the server needs to answer these queries.
    pub fn evaluation_keys(&self) -> Vec<u8> {
        locked(&self.session).evaluation_keys().to_vec()
    }
}

fn locked(session: &Mutex<FetchSession>) -> MutexGuard<'_, FetchSession> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

impl core::fmt::Debug for AskedKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "AskedKeys({} queries, redacted)", self.queries.len())
    }
}

impl KeyedClient {
    /// Of a table whose description is the publisher's word, with the keys of the owner who sealed it, if one did.
    ///
    /// # Errors
    /// [`Error::Envelope`] for keys that did not seal it, or if the system gives no randomness; [`Error::Range`] for a sealed
    /// table without keys.
    pub fn new(description: Description, keys: Option<&Keys>) -> Result<Self> {
        let shape = description.geometry().shape(*description.name())?;
        let sealed = match (description.seed().is_some(), keys) {
            (true, _) => None,
            (false, None) => {
                return Err(Error::Range {
                    what: "keys of a table that its owner sealed",
                    expected: "those of the owner".to_owned(),
                    actual: "none".to_owned(),
                });
            }
            (false, Some(keys)) => Some(TableKeys::derive(&keys.master, description.name())),
        };
        if sealed.as_ref().is_some_and(|keys| !keys.is_authentic(&description)) {
            return Err(foreign());
        }
        let session = begin(&description)?;
        Ok(KeyedClient { description, shape, sealed, session, ended: false })
    }

    /// What is public of the table.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// What the server answers with: it needs these once a session.
    pub fn evaluation_keys(&self) -> Vec<u8> {
        locked(&self.session).evaluation_keys().to_vec()
    }

    /// The most bytes that an answer to one query has.
    pub fn longest_answer(&self) -> usize {
        let fetches = self.together() * self.description.geometry().parts;
        ANSWER_HEAD + fetches * self.shape.layers() * ANSWER_BYTES
    }

    /// Keys of one query, beside a query of one.
    fn together(&self) -> usize {
        TOGETHER[usize::from(self.description.geometry().parts > 1)]
    }

    /// Begins another session if this one does not serve a lookup of so many keys; whether it did. Its keys are other ones.
    ///
    /// # Errors
    /// [`Error::FetchEnded`] after a failure; those of the class, as of [`Self::ask`]; [`Error::Envelope`] if the system gives
    /// no randomness.
    pub fn renew_for(&mut self, keys: usize, bound: usize) -> Result<bool> {
        if self.ended {
            return Err(Error::FetchEnded);
        }
        let queries = class(keys, bound)?.div_ceil(self.together());
        let renew = !locked(&self.session).serves(queries);
        if renew {
            self.renew()?;
        }
        Ok(renew)
    }

    /// Begins another session, as a process that was forked does.
    ///
    /// # Errors
    /// [`Error::Envelope`] if the system gives no randomness.
    pub fn renew(&mut self) -> Result<()> {
        self.session = begin(&self.description)?;
        Ok(())
    }

    /// Asks for the records of keys, as if they were `bound`: queries, each of which is answered by itself. Their number and
    /// lengths depend on the class of `bound` alone.
    ///
    /// # Errors
    /// [`Error::Range`] for more keys than the bound, or a bound of 0; or where [`Self::renew_for`] was not called before.
    /// [`Error::FetchEnded`] after a failure.
    pub fn ask(
        &mut self,
        keys: &[LookupKey<'_>],
        bound: usize,
    ) -> Result<(AskedKeys, Vec<Vec<u8>>)> {
        if self.ended {
            return Err(Error::FetchEnded);
        }
        let class = class(keys.len(), bound)?;
        let hash = self.sealed.as_ref().map(TableKeys::hash).or(self.description.seed());
        let Some(hash) = hash else { return Err(foreign()) };
        let mut digests: Vec<Digest> = keys.iter().map(|key| hash.digest(*key)).collect();
        // Random keys fill up: their buckets are as likely as those of any other.
        while digests.len() < class {
            let mut filler = [0; 32];
            crate::protect::aead::random(&mut filler)?;
            digests.push(hash.digest(LookupKey::Bytes(&filler)));
        }
        let (mut queries, mut messages) = (Vec::new(), Vec::new());
        for some in digests.chunks(self.together()) {
            let places = some.iter().flat_map(|digest| self.description.buckets(digest));
            let places = Zeroizing::new(places.collect::<Vec<_>>());
            let (asked, message) = locked(&self.session).ask_all(&self.shape, places)?;
            queries.push(asked);
            messages.push(message);
        }
        let session = Arc::clone(&self.session);
        Ok((AskedKeys { digests, wanted: keys.len(), queries, session }, messages))
    }

    /// The record of each key, in order; none where the table has no such key. Of another key of the same tag, one in 2^128,
    /// it would be that one's.
    ///
    /// # Errors
    /// [`Error::Scheme`] for bytes that are no answers to these queries, [`Error::Range`] for another number of them: both
    /// tell nothing of the keys. [`Error::FetchEnded`] where a bucket is not what was published: nothing is returned, and
    /// nothing more is asked for.
    pub fn open(
        &mut self,
        asked: &AskedKeys,
        answers: &[impl AsRef<[u8]>],
    ) -> Result<Vec<Option<Zeroizing<Vec<u8>>>>> {
        if self.ended {
            return Err(Error::FetchEnded);
        }
        if answers.len() != asked.queries.len() {
            return Err(Error::Range {
                what: "answers to a lookup",
                expected: asked.queries.len().to_string(),
                actual: answers.len().to_string(),
            });
        }
        let parts = self.description.geometry().parts;
        let mut found = Vec::with_capacity(asked.digests.len());
        let mut failed = false;
        let of_queries = asked.digests.chunks(self.together());
        for ((digests, query), answer) in of_queries.zip(&asked.queries).zip(answers) {
            let description = &self.description;
            // All of them are looked at, so that no time tells which one failed.
            let bodies =
                locked(&asked.session).open_with(query, answer.as_ref(), |at, bucket| {
                    let (digest, part) = (&digests[at / parts], at % parts);
                    let place = description.buckets(digest).nth(part)?;
                    let right = description.is_bucket(part, place, bucket);
                    let (body, there) = description.body(digest, bucket);
                    Some((right, body, there))
                })?;
            failed |= bodies.iter().any(|(right, ..)| !right);
            for (digest, bodies) in digests.iter().zip(bodies.chunks(parts)) {
                let mut body = Zeroizing::new(vec![0; self.description.geometry().body()]);
                for (_, held, _) in bodies {
                    body.iter_mut().zip(held).for_each(|(out, byte)| *out |= byte);
                }
                // What is not there is opened too: whether it was shows in no time.
                let content = match &self.sealed {
                    Some(keys) => keys.open(&digest.tag, &body),
                    None => self.description.content(&body).map(Zeroizing::new),
                };
                let there = bodies.iter().filter(|(.., there)| *there).count();
                failed |= there > 1 || there == 1 && content.is_none();
                found.push(content.filter(|_| there == 1));
            }
        }
        self.ended = failed;
        if failed {
            return Err(Error::FetchEnded);
        }
        found.truncate(asked.wanted);
        Ok(found)
    }
}

fn begin(description: &Description) -> Result<Arc<Mutex<FetchSession>>> {
    let session = FetchSession::begin(&Keys::generate()?, description.name())?;
    Ok(Arc::new(Mutex::new(session)))
}

/// How many keys a lookup looks as if it were of.
fn class(keys: usize, bound: usize) -> Result<usize> {
    let range = |what, expected: String, actual: usize| {
        Err(Error::Range { what, expected, actual: actual.to_string() })
    };
    if bound == 0 || bound > MOST {
        return range("the bound of one lookup", format!("1 to {MOST}"), bound);
    }
    if keys > bound {
        return range("keys of one lookup", format!("at most {bound}, its bound"), keys);
    }
    let class = LOOKUP_CLASSES.into_iter().find(|class| bound <= *class);
    Ok(class.unwrap_or_else(|| bound.next_multiple_of(LOOKUP_CLASSES[2])))
}

/// Most keys of one lookup: its queries are those of one session.
const MOST: usize = 5_000;
