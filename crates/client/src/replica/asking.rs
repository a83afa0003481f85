//! Asking: a message goes to the server, under a query key that it has, and its answer is kept, or opened as it comes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use ciphervec_owner::search::{AnswerOpener, Opened, Owner, Query};
use ciphervec_owner::{Error as SchemeError, SegmentId};

use crate::error::{Error, Result};
use crate::host::{Head, Host, Later, Lost, Progress, Sink};
use crate::replica::Replica;
use crate::replica::alone::Alone;
use crate::replica::traffic::Traffic;
use crate::store::{Asked, Evaluated, Receiver, answered_on};
use crate::threads::heavy;

/// Servers behind one address may each have to be given the keys.
const SENDS: usize = 4;

/// Bytes of an answer that is kept whole, whatever it is about.
const MAX_WHOLE: u64 = 1 << 30;
/// For segments that came since: so many bytes, beside twice as many as those known can need.
const NEWER: u64 = 16 << 20;
/// Coefficients of a polynomial, of which a block of rows has one, and bytes of the longest word of an answer.
const DEGREE: u64 = 4096;
const LONGEST_WORD: u64 = 8;

/// A message as it is sent.
pub struct Sent<'a> {
    pub bytes: &'a [u8],
    /// Questions in it.
    pub rows: usize,
    /// The only segments that it is about.
    pub named: Option<&'a [SegmentId]>,
    /// That its answer is made with the evaluation keys of.
    pub epoch: u32,
    pub owner: &'a Arc<Owner>,
    /// The query itself, where this client made it and opens the answer.
    pub query: Option<&'a Query>,
    /// Bytes of the parts of its answers that were fetched ahead.
    pub ahead: usize,
}

impl Replica {
    /// What a lone question took.
    pub fn note(&mut self, sent: &Sent<'_>, down: u64) {
        if sent.rows == 1 {
            let (up, ahead) = (sent.bytes.len() as u64, sent.ahead as u64);
            self.traffic = Some(Traffic { up, down, ahead });
        }
    }
}

/// What is made of an answer while it comes.
pub enum Kept<'a> {
    Whole(Vec<u8>),
    Opener(Box<Streamed<'a>>),
}

/// An answer that is opened while it comes.
pub struct Streamed<'a> {
    pub fresh: Box<dyn Fn() -> AnswerOpener + 'a>,
    pub opener: Option<AnswerOpener>,
    /// Which state it has to be of, and what is said of another.
    pub expected: Option<(u64, Error)>,
}

/// Where an answer goes: it tells how long the server took, and what came.
pub struct Answer<'a> {
    host: &'a dyn Host,
    began: Duration,
    most: u64,
    pub came: u64,
    total: Option<u64>,
    head: Option<Head>,
    /// On opening it.
    pub spent: Duration,
    refused: Option<Error>,
    pub kept: Kept<'a>,
}

impl<'a> Answer<'a> {
    pub fn new(host: &'a dyn Host, up: usize, most: u64, kept: Kept<'a>) -> Self {
        let began = host.now();
        host.progress(Progress {
            phase: "upload",
            done: up as u64,
            total: Some(up as u64),
            ms: None,
        });
        Answer {
            host,
            began,
            most,
            came: 0,
            total: None,
            head: None,
            spent: Duration::ZERO,
            refused: None,
            kept,
        }
    }

    /// Whether more came than was to come.
    pub fn is_too_long(&self) -> bool {
        self.came.max(self.total.unwrap_or_default()) > self.most
    }

    pub fn finish(self) -> Option<core::result::Result<Opened, SchemeError>> {
        match self.kept {
            Kept::Opener(streamed) => streamed.opener.map(AnswerOpener::finish),
            Kept::Whole(_) => None,
        }
    }
}

impl Sink for Answer<'_> {
    fn begin(&mut self, head: &Head) -> core::result::Result<(), Lost> {
        self.head = Some(head.clone());
        self.came = 0;
        self.total = head.count("content-length");
        match &mut self.kept {
            Kept::Whole(data) => data.clear(),
            Kept::Opener(streamed) => {
                let Streamed { fresh, opener, expected } = &mut **streamed;
                // Before any of it is opened: which state it is of.
                let now = answered_on(head, "the server").map(|(version, _)| version);
                let wrong = match (now, &expected) {
                    (Err(error), _) => Some(error),
                    (Ok(now), Some((version, _))) if now != *version => {
                        expected.take().map(|(_, error)| error)
                    }
                    (Ok(_), _) => None,
                };
                // What failed its check is said at the end, also where another attempt follows.
                let failed = opener.take().map(AnswerOpener::finish);
                let failed = match failed {
                    Some(Err(
                        error @ (SchemeError::Tampered { .. } | SchemeError::Mismatched { .. }),
                    )) => Some(error),
                    Some(Ok(Opened { disqualified: segments, .. })) if !segments.is_empty() => {
                        Some(SchemeError::Tampered { segments })
                    }
                    _ => None,
                };
                self.refused = failed.map(Error::Scheme).or(wrong);
                if self.refused.is_some() {
                    return Err(Lost::refused("the answer is not taken"));
                }
                *opener = Some(fresh());
            }
        }
        done(self.host, "server", 0, None, self.began);
        Ok(())
    }

    fn take(&mut self, piece: &[u8]) -> core::result::Result<(), Lost> {
        self.came += piece.len() as u64;
        if self.is_too_long() {
            return Err(Lost::too_long(self.most));
        }
        match &mut self.kept {
            Kept::Whole(data) => data.extend_from_slice(piece),
            Kept::Opener(streamed) => {
                let began = self.host.now();
                if let Some(opener) = &mut streamed.opener {
                    opener.write(piece);
                }
                self.spent += self.host.now().saturating_sub(began);
            }
        }
        done(self.host, "download", self.came, self.total, self.began);
        Ok(())
    }
}

impl Receiver for Answer<'_> {
    fn answer(&mut self) -> Option<(Head, Vec<u8>)> {
        Some((self.head.take()?, Vec::new()))
    }

    fn refused(&mut self) -> Option<Error> {
        self.refused.take()
    }
}

pub fn done(host: &dyn Host, phase: &'static str, done: u64, total: Option<u64>, began: Duration) {
    let ms = Some(host.now().saturating_sub(began).as_secs_f64() * 1e3);
    host.progress(Progress { phase, done, total, ms });
}

/// The epoch to make so many queries under: counted, and the server has its evaluation keys as far as is known.
pub async fn query_epoch(alone: &mut Alone<'_>, host: &dyn Host, queries: usize) -> Result<u32> {
    loop {
        let (keys, name) = (alone.query_keys.clone(), alone.name());
        if !alone.description.encrypts_queries() {
            return Ok(alone.description.epoch);
        }
        if keys.present(host).refused {
            if let Some(asked) = keys.ask_outside(queries) {
                host.warn(&format!(
                    "{asked} queries of this client were asked under one query key of {name}. Begin another with {}().",
                    alone.face.named("rotate_query_key")
                ));
            }
            return Ok(alone.description.epoch);
        }
        let owner = Arc::clone(&alone.owner);
        let (epoch, fresh) = keys.take(host, owner.key_id(), queries).await?;
        if !fresh {
            return Ok(epoch);
        }
        alone.tokens.clear(); // of the key before
        let held = hand_over(alone, host, &owner, epoch).await?;
        alone.settle(host).await?;
        if !held {
            keys.refuse(host, owner.key_id()).await;
            host.warn(&format!(
                "the server of {name} takes no query keys of its clients: it is of a release before 0.2. Queries are asked under the \
                 collection's own query key, which changes with {}() alone. SECURITY.md says what a server that lies learns of a key; upgrade \
                 the server, or rotate it every {} queries.",
                alone.face.named("rotate_query_key"),
                keys.most()
            ));
        } else if Arc::ptr_eq(&alone.owner, &owner) {
            return Ok(epoch);
        } // else others have changed the keys
    }
}

/// The most bytes that an answer about the listed segments takes, those that are passed over here included; none under schemes whose
/// answers are not made of words.
pub fn most_bytes(replica: &Replica, queries: usize, named: Option<&[SegmentId]>) -> Option<u64> {
    if replica.description.has_key_pair() {
        return None;
    }
    let padded = (replica.description.spec.dimension() as u64).next_power_of_two();
    let of = |rows: u32, level: u8| {
        let in_block = ((DEGREE << level) / padded).max(1);
        let rows = u64::from(rows);
        64 + rows.div_ceil(8) + LONGEST_WORD * (rows + DEGREE * rows.div_ceil(in_block))
    };
    let levels: HashMap<_, _> =
        replica.directory.segments().map(|(id, _, level)| (id, level)).collect();
    let named: Option<HashSet<_>> = named.map(|named| named.iter().collect());
    let listing = replica.store.listing();
    let listed = listing.segments.values();
    let asked = listed.filter(|one| named.as_ref().is_none_or(|named| named.contains(&one.id)));
    let one: u64 =
        asked.map(|one| of(one.rows, levels.get(&one.id).copied().unwrap_or_default())).sum();
    // Beside what is said of segments: sums of masks, of each level.
    Some((one + LONGEST_WORD * DEGREE * 64).saturating_mul(queries as u64))
}

/// Sends a message and keeps its answer; the commit that it was computed on.
pub async fn fetched(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    sent: &Sent<'_>,
) -> Result<(u64, Vec<u8>)> {
    let most = most_bytes(alone, sent.rows, sent.named);
    let most = most.map_or(MAX_WHOLE, |most| most.saturating_mul(2).saturating_add(NEWER));
    let most = most.min(MAX_WHOLE);
    let before = alone.store.listing().version;
    let mut sink = Answer::new(host, sent.bytes.len(), most, Kept::Whole(Vec::new()));
    let version = match answered(alone, host, sent, &mut sink).await {
        Err(error) if sink.is_too_long() => {
            alone.settle(host).await?;
            alone.refresh(host).await?;
            let came = alone.store.listing().version != before;
            return Err(if came { alone.too_fast() } else { error });
        }
        answered => answered?,
    };
    alone.settle(host).await?;
    alone.note(sent, sink.came);
    match sink.kept {
        Kept::Whole(data) => Ok((version, data)),
        Kept::Opener(_) => Err(alone.too_fast()),
    }
}

/// Has the server answer a message; the commit that the answer was computed on.
pub async fn answered(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    sent: &Sent<'_>,
    sink: &mut Answer<'_>,
) -> Result<u64> {
    let (keys, store) = (alone.query_keys.clone(), Arc::clone(&alone.store));
    let again = || -> Later<'_, Result<()>> { Box::pin(keys.again(host, sent.epoch, sent.rows)) };
    // By the state that the query was made in: where others move on, `evaluate` tells.
    let check = alone.states.evaluation_check();
    let (without, described) = (alone.unasked(), Arc::clone(&alone.description));
    let lent = sent.query.filter(|_| store.computes());
    let lender = lent.map(|query| sent.owner.lender(query)).transpose()?.flatten();
    let asked = Asked {
        spec: &described.spec,
        query: sent.bytes,
        lender: lender.as_deref(),
        without: &without,
        check: &check,
        again: &again,
    };
    for _ in 0..SENDS {
        let answer = alone.apart(store.evaluate(host, &asked, sink)).await;
        let answer = match answer {
            Err(Error::Scheme(error)) => return Err(alone.checked(host, error).await),
            answer => answer?,
        };
        if let Evaluated::Answered(version) = answer {
            return Ok(version);
        }
        again().await?;
        // Others may have let go of the owner meanwhile, who makes these keys.
        if !Arc::ptr_eq(&alone.owner, sent.owner) {
            return Err(Error::Conflict("the keys have changed. Ask again.".to_owned()));
        }
        hand_over(alone, host, sent.owner, sent.epoch).await?;
    }
    Err(Error::server(format!(
        "the server of {} says that it lacks evaluation keys that it was given {SENDS} times. Ask its operator: its memory may be too small \
         for them, or several servers answer under one address.",
        alone.name()
    )))
}

/// Gives the server the evaluation keys of a session; whether it knows sessions.
async fn hand_over(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    owner: &Owner,
    epoch: u32,
) -> Result<bool> {
    let evaluation =
        heavy(|| owner.evaluation(epoch))?.map(|keys| keys.to_bytes()).unwrap_or_default();
    let store = Arc::clone(&alone.store);
    let held = alone.apart(store.hold(host, &evaluation)).await;
    if held.is_err() {
        let keys = alone.query_keys.clone();
        keys.end(host, owner.key_id()).await; // it has others of that number, say, or the owner's keys have changed
    }
    held
}
