//! Asking: a message is sealed under a query key that the server has, goes there, and its answer is opened.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use ciphervec_owner::protect::filter::FilterTag;
use ciphervec_owner::search::{
    AnswerFormat, Flood, Fold, OpenOptions, Opened, Owner, Query, QueryOptions, Retrieval,
    Selection, Token, WORDS_VERSION,
};
use ciphervec_owner::{Error as SchemeError, Id, SegmentId};

use crate::error::{Error, Result};
use crate::host::{Head, Host, Later, Lost, Progress, Sink};
use crate::matches::retrieval;
use crate::records::Filter;
use crate::replica::Replica;
use crate::replica::alone::Alone;
use crate::replica::traffic::Traffic;
use crate::store::{Asked, Evaluated, Receiver};
use crate::threads::heavy;

/// Queries sent in one message; a longer batch takes several.
pub const QUERY_ROWS: usize = 1024;
/// Bytes of an answer that this process computes.
pub const LOCAL: usize = 16 << 20;
/// Bytes of an answer, a row, nearly.
pub const LEAST_WORD: usize = 3;
/// Servers behind one address may each have to be given the keys.
const SENDS: usize = 4;

/// Bytes of an answer that is kept whole, whatever it is about.
const MAX_WHOLE: u64 = 1 << 30;
/// For segments that came since: so many bytes, beside twice as many as those known can need.
const NEWER: u64 = 16 << 20;
/// Coefficients of a polynomial, of which a block of rows has one, and bytes of the longest word of an answer.
const DEGREE: u64 = 4096;
const LONGEST_WORD: u64 = 8;

/// What is asked.
pub struct Question {
    pub rows: Vec<f32>,
    pub count: Option<usize>,
    pub within: Option<f64>,
    pub filter: Option<Filter>,
    pub among: Option<Vec<Id>>,
    /// Of the noise that every score carries, for others.
    pub flood: Option<f64>,
    /// Ask about the others where segments failed a check before.
    pub skip_quarantined: bool,
}

/// What one message asks, and what its answer is opened under.
pub struct Message<'a> {
    pub question: &'a Question,
    /// What was in quarantine when the search began. While it goes on others may find another segment out, which would be passed over
    /// with nobody told.
    pub held: HashSet<SegmentId>,
    /// That a row must have to be in the answer.
    pub tags: Vec<FilterTag>,
    /// None for all rows.
    pub allow: Option<Arc<Selection>>,
    /// What the replica had lost when these were chosen: rows that go later may be back elsewhere, with other metadata.
    pub losses: u64,
    /// That of the segments that it is about.
    pub center: Vec<f32>,
}

/// A message, sealed.
pub struct Sealed<'a> {
    pub message: &'a Message<'a>,
    pub query: Arc<Query>,
    pub owner: Arc<Owner>,
    epoch: u32,
    pub retrieval: Retrieval,
}

/// What a query is made under.
#[derive(Default)]
pub struct Under<'a> {
    pub epoch: u32,
    /// Halves of its answer that are here.
    pub tokens: Option<Vec<Token>>,
    /// The only segments that it is about.
    pub named: Option<&'a [SegmentId]>,
    /// Clusters that it is about beside.
    pub fold: Option<Fold<'a>>,
}

/// Asks about every segment, and opens the answer once it is there; with halves of it that are here, as long as they go with it.
pub async fn whole(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    message: &Message<'_>,
    rows: &[f32],
    mut ahead: Option<(u32, Vec<Token>)>,
) -> Result<Opened> {
    let queries = rows.len() / alone.description.spec.dimension();
    let (asked, known, losses, version, data) = loop {
        // What was fetched ahead was counted then.
        let (epoch, tokens) = match ahead.take() {
            Some((epoch, tokens)) => (epoch, Some(tokens)),
            None => (query_epoch(alone, host, queries).await?, None),
        };
        let asked =
            sealed(alone, host, message, rows, Under { epoch, tokens, ..Under::default() })?;
        let (known, losses) = (alone.attached(), alone.losses);
        let sent = asked.sent(alone, host);
        let (version, data) = fetched(alone, host, &sent).await?;
        if asked.query.ahead() == 0 {
            break (asked, known, losses, version, data);
        }
        match heavy(|| asked.owner.complete(&asked.query, &data)) {
            Ok(data) => break (asked, known, losses, version, data),
            // The server's rows or keys have changed: the question is asked whole, under another mask.
            Err(SchemeError::Token { .. }) => alone.tokens.clear(),
            Err(error) => return Err(alone.checked(host, error).await),
        }
    };
    if version > alone.store.listing().version {
        alone.refresh(host).await?;
    }
    let mut newer = Vec::new();
    if version != alone.store.listing().version {
        // Segments that came after the answer can't be in it. Rows that left may have come back in one of those: then the answer is
        // neither the old state's nor the new one's.
        if alone.losses != losses {
            return Err(alone.too_fast());
        }
        newer = alone.attached().difference(&known).copied().collect();
    }
    open(alone, host, &asked, &data, &newer).await
}

/// What the server answers in.
pub fn format_of(replica: &Replica) -> AnswerFormat {
    let known = replica.store.listing().query_version;
    if known < u64::from(WORDS_VERSION) { AnswerFormat::First } else { AnswerFormat::Short }
}

/// The query of a message.
pub fn sealed<'a>(
    alone: &Alone<'_>,
    host: &dyn Host,
    message: &'a Message<'a>,
    rows: &[f32],
    Under { epoch, tokens, named, fold }: Under<'_>,
) -> Result<Sealed<'a>> {
    let began = host.now();
    let options = QueryOptions {
        epoch,
        tags: &message.tags,
        segments: named,
        format: format_of(alone),
        centre: &message.center,
        tokens,
        fold,
    };
    let query = {
        let (owner, directory) = (&alone.owner, &alone.directory);
        Arc::new(heavy(|| owner.query(rows, directory, options))?)
    };
    let bytes = query.to_bytes().len() as u64;
    done(host, "encrypt", bytes, Some(bytes), began);
    let Question { count, within, .. } = message.question;
    let metric = alone.description.spec.metric();
    let retrieval = retrieval(metric, *count, *within, alone.directory.len());
    Ok(Sealed { message, query, owner: Arc::clone(&alone.owner), epoch, retrieval })
}

impl Sealed<'_> {
    /// As it is sent; what opening its answer takes is made ready meanwhile.
    pub fn sent(&self, alone: &Alone<'_>, host: &dyn Host) -> Sent<'_> {
        // In this process it is made with the answer.
        if !alone.store.computes() {
            let levels = alone.directory.levels(self.query.segments());
            let (owner, query) = (Arc::clone(&self.owner), Arc::clone(&self.query));
            // Opening says what is wrong with it.
            host.meanwhile(Box::new(move || drop(owner.prepare(&query, &levels))));
        }
        Sent {
            bytes: self.query.to_bytes(),
            rows: self.query.len(),
            named: self.query.segments(),
            epoch: self.epoch,
            owner: &self.owner,
            query: Some(&self.query),
            ahead: self.query.ahead(),
        }
    }
}

/// To be called right before an answer is opened: which rows its filter chooses is the owner's word, and nothing is passed over that
/// nobody was told of.
pub async fn before_opening(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    asked: &Sealed<'_>,
) -> Result<Option<Flood>> {
    if !asked.message.tags.is_empty() && alone.states.present.is_some() {
        let masks = alone.tagged(host, &asked.message.tags).await?;
        asked.query.expect_matching(masks);
    }
    let Message { question, held, allow, losses, .. } = asked.message;
    if allow.is_some() && alone.losses != *losses {
        return Err(alone.too_fast());
    }
    alone.refuse_held(host, question.skip_quarantined, Some(held)).await?;
    let Some(deviation) = question.flood else { return Ok(None) };
    alone.flood(host, deviation, (&asked.query, asked.epoch), allow.as_deref()).await.map(Some)
}

/// Opens an answer that is here. Segments in `newer` may be missing in it.
pub async fn open(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    asked: &Sealed<'_>,
    data: &[u8],
    newer: &[SegmentId],
) -> Result<Opened> {
    let flood = before_opening(alone, host, asked).await?;
    let began = host.now();
    let options = OpenOptions {
        retrieval: asked.retrieval,
        selection: asked.message.allow.as_deref(),
        newer,
        flood: flood.as_ref(),
    };
    let (owner, directory) = (&alone.owner, &alone.directory);
    let opened = heavy(|| owner.open(&asked.query, data, directory, options));
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => return Err(alone.failed(host, &asked.query, error).await),
    };
    done(host, "open", data.len() as u64, Some(data.len() as u64), began);
    Ok(opened)
}

/// Puts writers' segments into quarantine that failed their check in an answer, and says so.
pub async fn pass_over(
    alone: &mut Alone<'_>,
    host: &dyn Host,
    disqualified: &[SegmentId],
) -> Result<()> {
    if disqualified.is_empty() {
        return Ok(());
    }
    alone.hold(host, disqualified, "a writer's segment failed its check").await?;
    for id in disqualified {
        host.warn(&alone.view().passed_over(*id));
    }
    Ok(())
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
    let mut data = Vec::new();
    let mut sink = Answer::new(host, sent.bytes.len(), most, &mut data);
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
    Ok((version, data))
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

/// What is made of an answer while it comes.
pub trait Keep {
    /// It comes, from its start. An error where it is not to be taken.
    fn begin(&mut self, head: &Head) -> Result<()>;
    /// The next bytes.
    fn take(&mut self, piece: &[u8]);
}

/// It is kept whole.
impl Keep for Vec<u8> {
    fn begin(&mut self, _head: &Head) -> Result<()> {
        self.clear();
        Ok(())
    }

    fn take(&mut self, piece: &[u8]) {
        self.extend_from_slice(piece);
    }
}

/// Where an answer goes: it tells how long the server took, and what came.
pub struct Answer<'a> {
    host: &'a dyn Host,
    began: Duration,
    most: u64,
    pub came: u64,
    total: Option<u64>,
    head: Option<Head>,
    refused: Option<Error>,
    kept: &'a mut dyn Keep,
}

impl<'a> Answer<'a> {
    pub fn new(host: &'a dyn Host, up: usize, most: u64, kept: &'a mut dyn Keep) -> Self {
        let began = host.now();
        host.progress(Progress {
            phase: "upload",
            done: up as u64,
            total: Some(up as u64),
            ms: None,
        });
        Answer { host, began, most, came: 0, total: None, head: None, refused: None, kept }
    }

    /// Whether more came than was to come.
    pub fn is_too_long(&self) -> bool {
        self.came.max(self.total.unwrap_or_default()) > self.most
    }
}

impl Sink for Answer<'_> {
    fn begin(&mut self, head: &Head) -> core::result::Result<(), Lost> {
        self.head = Some(head.clone());
        self.came = 0;
        self.total = head.count("content-length");
        if let Err(error) = self.kept.begin(head) {
            self.refused = Some(error);
            return Err(Lost::refused("the answer is not taken"));
        }
        done(self.host, "server", 0, None, self.began);
        Ok(())
    }

    fn take(&mut self, piece: &[u8]) -> core::result::Result<(), Lost> {
        self.came += piece.len() as u64;
        if self.is_too_long() {
            return Err(Lost::too_long(self.most));
        }
        self.kept.take(piece);
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

fn done(host: &dyn Host, phase: &'static str, done: u64, total: Option<u64>, began: Duration) {
    let ms = Some(host.now().saturating_sub(began).as_secs_f64() * 1e3);
    host.progress(Progress { phase, done, total, ms });
}
