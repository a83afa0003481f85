//! Flooding: scores that others are shown carry Gaussian noise, and what they tell of the secrets beneath is counted before any is opened.
//!
//! Each flooded score is still a hint about two secrets: the noise of its row, fixed when the row was sealed, and that of the query and
//! evaluation keys that it was asked under. `docs/sealed.md`, section 4.3, derives how many hints leave how much of either.

use std::collections::{BTreeMap, BTreeSet};

use ciphervec_owner::search::{Flood, Origin, Query, Selection};
use ciphervec_owner::{Mode, SegmentId};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::host::{COUNTS, Host};
use crate::json;
use crate::replica::Replica;

/// The standard deviation of the noise, as a cosine, unless the caller says otherwise.
pub const DEVIATION: f64 = 1.0 / 256.0;
const WIDEST: f64 = 1.0 / 16.0;
/// What hints may tell of a secret's variance, relative to what is known without them: by Hint-LWE a sealed row is then as hard to read as
/// with noise of σ² over 2 (1 + 1/4) = 2.5.
const SHARE: f64 = 0.25;

/// What flooding with a deviation allows, and what of it is left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloodingPlan {
    /// Of the noise in every score, as a cosine.
    pub deviation: f64,
    /// How many queries, each alone, may rank every live row in its life: 0 where one is more than a query key hides.
    pub queries: u64,
    /// The same for the row that was ranked most.
    pub queries_left: u64,
    /// How many rows may be ranked, over all queries, under one query key.
    pub rows_an_epoch: u64,
    /// The same under the present one.
    pub rows_left: u64,
}

/// Scores that others were shown, counted in such with the widest noise: hints add up by 1/deviation².
#[derive(Default, Serialize, Deserialize)]
struct Shown {
    /// Under one query key, by keys and epoch.
    keys: BTreeMap<String, u64>,
    /// Of the rows of one segment, whatever keys the collection got meanwhile: its id is as unique as its noise.
    segments: BTreeMap<String, u64>,
}

fn cost(deviation: f64) -> u64 {
    (WIDEST / deviation).powi(2).ceil() as u64
}

/// How many scores with the widest noise may be shown of a secret that moves them by `noise`.
fn allowance(noise: f64) -> u64 {
    (SHARE * (WIDEST / noise).powi(2)) as u64
}

/// That noise of this deviation is neither too little to hide anything nor too much to rank by.
pub fn check_deviation(deviation: f64) -> Result<()> {
    match Flood::new(deviation) {
        Ok(_) => Ok(()),
        Err(ciphervec_owner::Error::Range { .. }) => Error::input(format!(
            "flooding must be a standard deviation of 2^-12 to 2^-4, as a cosine; got {deviation}."
        )),
        Err(error) => Err(error.into()),
    }
}

impl Replica {
    fn flooding_entry(&self) -> String {
        let spec = blake3::hash(&self.description.spec.to_bytes()).to_hex();
        format!("{COUNTS}{}", &spec[..32])
    }

    fn query_key(&self, epoch: u32) -> String {
        format!("{} epoch {epoch}", self.owner.key_id())
    }

    async fn shown_to_others(&self, host: &dyn Host) -> Result<Shown> {
        let entry = self.flooding_entry();
        let Some(bytes) = host.get(&entry).await? else { return Ok(Shown::default()) };
        json::read(&bytes).map_err(|error| {
            Error::Corrupt(format!(
                "what this client has counted of {} under {entry} is damaged ({error}), and nothing is shown to others until it is there \
                 again. Seal the rows again with optimize and a new query key, and delete it, if there is no copy.",
                self.name()
            ))
        })
    }

    async fn keep_shown(&self, host: &dyn Host, shown: &Shown) -> Result<()> {
        let bytes = serde_json::to_vec(shown).map_err(|error| Error::Storage(error.to_string()))?;
        host.put(&self.flooding_entry(), &bytes).await
    }

    /// What results for others cost with noise of this deviation, and how many may still be shown, of rows under the query key of this epoch.
    async fn plan_under(
        &self,
        host: &dyn Host,
        deviation: f64,
        epoch: u32,
    ) -> Result<FloodingPlan> {
        check_deviation(deviation)?;
        self.refuse_floods()?;
        let hints = self.owner.hints(&self.directory)?;
        let shown = self.shown_to_others(host).await?;
        let (each, rows, keys) = (cost(deviation), allowance(hints.row), allowance(hints.key));
        let used = |id: SegmentId| shown.segments.get(&id.to_string()).copied().unwrap_or(0);
        let most = self.directory.segments().map(|(id, ..)| used(id)).max().unwrap_or(0);
        let under = shown.keys.get(&self.query_key(epoch)).copied().unwrap_or(0);
        let (rows_an_epoch, rows_left) = (keys / each, keys.saturating_sub(under) / each);
        // A session that is used up ends by itself: only a query that no session has room for is refused for its key.
        let rows = if rows_an_epoch < self.directory.len() as u64 { 0 } else { rows };
        Ok(FloodingPlan {
            deviation,
            queries: rows / each,
            queries_left: rows.saturating_sub(most) / each,
            rows_an_epoch,
            rows_left,
        })
    }

    /// The same under the query key that queries are asked under by now.
    pub async fn flooding_plan(&self, host: &dyn Host, deviation: f64) -> Result<FloodingPlan> {
        let session = self.query_keys.next(host, self.owner.key_id()).await?;
        let epoch = session.unwrap_or(self.description.epoch);
        self.plan_under(host, deviation, epoch).await
    }

    /// Ends a session that has not as many flooded scores left as so many queries of every row take, if a new one has.
    pub async fn renew_for_others(
        &self,
        host: &dyn Host,
        queries: usize,
        deviation: f64,
    ) -> Result<()> {
        let key = self.owner.key_id();
        let Some(epoch) = self.query_keys.next(host, key).await? else { return Ok(()) };
        let plan = self.plan_under(host, deviation, epoch).await?;
        let wanted = (queries * self.directory.len()) as u64;
        if plan.rows_left < wanted && wanted <= plan.rows_an_epoch {
            self.query_keys.end(host, key).await;
        }
        Ok(())
    }

    /// Counts what others are about to see, durably: every live row that is ranked, of every query. [`Error::Exhausted`] where that would be
    /// too much; nothing is counted then.
    pub async fn flood(
        &self,
        host: &dyn Host,
        deviation: f64,
        (query, epoch): (&Query, u32),
        allow: Option<&Selection>,
    ) -> Result<Flood> {
        let flood = Flood::new(deviation)?;
        self.refuse_floods()?;
        if self.store.lasts() && !host.counts() {
            return Err(Error::Storage(
                "what others are shown is counted where the next process finds it, and this client remembers nothing. Give it a folder."
                    .to_owned(),
            ));
        }
        let asked = |id: &SegmentId| query.segments().is_none_or(|named| named.contains(id));
        let ranked: Vec<_> = match allow {
            None => {
                let live = |id| self.directory.names(id).into_iter().flatten().flatten().count();
                self.directory.segments().map(|(id, ..)| (id, live(id))).collect()
            }
            Some(chosen) => chosen.counts().collect(),
        };
        let (mut segments, mut rows) = (BTreeSet::new(), 0u64);
        for (id, live) in ranked.into_iter().filter(|(id, _)| asked(id)) {
            segments.insert(id);
            rows += live as u64;
        }
        let hints = self.owner.hints(&self.directory)?;
        let (queries, each) = (query.len() as u64, cost(deviation));
        let _lock = host.lock(&self.flooding_entry()).await?;
        let mut shown = self.shown_to_others(host).await?;
        let (asked, most) = (queries.saturating_mul(rows), allowance(hints.key) / each);
        if asked > most {
            // No epoch allows it, whatever was shown before.
            return Err(Error::Exhausted(format!(
                "these queries rank {asked} rows for others, and with noise of {deviation} a query key hides {most} in all. Rank fewer rows, \
                 by a filter, or flood with more noise."
            )));
        }
        let add = |used: &mut u64, more: u64, allowed: u64, next: &str| {
            let now = used.saturating_add(more);
            if now > allowed {
                return Err(Error::Exhausted(format!(
                    "others have been shown as many scores {next} ({used} of {allowed} are used, in scores with noise of 2^-4), or flood \
                     with more noise."
                )));
            }
            *used = now;
            Ok(())
        };
        for id in &segments {
            add(
                shown.segments.entry(id.to_string()).or_default(),
                queries * each,
                allowance(hints.row),
                &format!(
                    "of these rows as their noise hides. Seal them again with optimize({})",
                    self.face.said("reseal")
                ),
            )?;
        }
        add(
            shown.keys.entry(self.query_key(epoch)).or_default(),
            asked.saturating_mul(each),
            allowance(hints.key),
            "as the query key of this epoch hides. Begin another with rotate_query_key(), rank fewer rows",
        )?;
        self.keep_shown(host, &shown).await?;
        Ok(flood)
    }

    fn refuse_floods(&self) -> Result<()> {
        if self.description.spec.mode() != Mode::Sealed {
            return self.refuse_others("results");
        }
        let mut segments = self.directory.segments();
        let written: BTreeSet<_> = segments
            .by_ref()
            .filter_map(|(id, ..)| match self.directory.origin(id) {
                Some(Origin::Writer(name)) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        if written.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = written.into_iter().collect();
        Error::input(format!(
            "{} has rows of writers ({}), whose vectors you have not checked: one made for it would read the query's noise out of a score, \
             flooded or not. Take them over with adopt() first, or ask for yourself, {}.",
            self.name(),
            names.join(", "),
            self.face.chosen("audience", "owner")
        ))
    }

    /// What carries noise that can't be hidden is not for others.
    pub fn refuse_others<T>(&self, what: &str) -> Result<T> {
        Error::input(format!(
            "{what} of {}, mode {}, are the key owner's own: they carry noise of the key that can't be taken off or hidden. Others can be \
             shown ids, or a match through the decrypt service; for results that are for anybody, keep the rows in mode {}.",
            self.name(),
            self.face.quoted(self.description.spec.mode().as_str()),
            self.face.quoted("sealed-index")
        ))
    }
}
