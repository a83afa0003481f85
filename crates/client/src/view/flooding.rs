//! Flooding: scores that others are shown carry Gaussian noise, and what they tell of the secrets beneath is counted before any is opened.
//!
//! Each flooded score is still a hint about two secrets: the noise of its row, fixed when the row was sealed, and that of the query and
//! evaluation keys that it was asked under.
//!
//! # How many hints leave how much
//!
//! Each flooded score is a hint: a known linear form of a secret, plus Gaussian noise. Two secrets outlive an
//! answer.
//!
//! - **A row's noise.** Divided by the scales the form is ⟨q̂, e_v⟩/Δx with ‖q̂‖ = 1, of standard deviation ρ_row =
//!   σ/Δx = 2^−17.0 at every level. Windows of rows do not overlap (docs/sealed.md, section 2.2), so hints of one
//!   row say nothing of another's, and m queries, however chosen, give information of norm at most m/(Δx τ)² about
//!   e_v.
//! - **The keys of an epoch.** The tree's noise is linear in the noise of the query and of the evaluation keys,
//!   which an epoch's queries share; the answer's bits add t times a rounding error, the larger of both versions
//!   (U's is no secret). A lying server may add t times something of its choice, up to what passes unseen
//!   (docs/sealed.md, section 4.5): ten times the variance is counted, for a shift of three deviations in every
//!   query. Per score that is ρ_key² = 10 \[V_b Δx² T² + m N σ² T² + 2^52 (1 + 2N/3)/12] / (G Δq Δx)², with the
//!   names of `crates/he/src/lattice/ring/bound.rs`. r ranked rows of all queries give information of norm at most r
//!   (ρ_key/(σ τ))², as if all hints pointed the same way.
//!
//! Learning with errors with hints of covariance τ² on noise of width σ is as hard as without hints at width σ_eff,
//! 1/σ_eff² = 2 (1/σ² + ‖Σ hᵢhᵢᵀ‖/τ²) (Kim, Lee, Seo & Song, *Toward Practical Lattice-Based Proof of Knowledge
//! from Hint-MLWE*, CRYPTO 2023). Both secrets are given hints for at most a quarter of 1/σ²: σ_eff² = σ²/2.5. The
//! theorem is about Gaussian noise. For ternary t, hints stay below a quarter of 1/(2/3) by the same count; that
//! this costs no more than the like in noise is a heuristic. Sums of products of both noises are in ρ_key, 2^−24 of
//! the rest.

use std::collections::{BTreeMap, BTreeSet};

use ciphervec_he_secret::lattice::ring::Hints;
use ciphervec_owner::search::{Flood, Origin, Query, Selection};
use ciphervec_owner::{Mode, SegmentId};
use serde::{Deserialize, Serialize};

use crate::belief::former;
use crate::error::{Error, Result};
use crate::host::{COUNTS, Host};
use crate::json;
use crate::view::View;
#[cfg(feature = "folder")]
use crate::{hex::Hex, storage::Storage};

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
    /// How many of them are left: for the row that was ranked most, and under the present query key unless another begins by itself.
    pub queries_left: u64,
    /// How many rows may be ranked, over all queries, under one query key.
    pub rows_an_epoch: u64,
    /// The same under the present one.
    pub rows_left: u64,
}

/// Scores that others were shown, counted in such with the widest noise: hints add up by 1/deviation².
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Shown {
    /// Under one query key, by keys and epoch.
    keys: BTreeMap<String, u64>,
    /// Of the rows of one segment, whatever keys the collection got meanwhile: its id is as unique as its noise.
    segments: BTreeMap<String, u64>,
    /// How many are allowed, for whoever looks at this without the index.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<Allowed>,
}

/// How many scores may be shown.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Allowed {
    /// Of the rows of one segment.
    rows: u64,
    /// Under one query key.
    keys: u64,
}

/// How much of one secret others were shown, in scores with noise of 2^-4.
#[cfg(feature = "folder")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Which secret.
    pub name: String,
    /// Scores shown.
    pub used: u64,
    /// Scores that may be; `None` where a release before 0.2 counted, which did not say.
    pub allowed: Option<u64>,
}

/// Of each index that is counted here, what is left of the segment and of the query key that others were shown most of.
///
/// # Errors
/// A place that can't be read, or counts that are damaged.
#[cfg(feature = "folder")]
pub fn budgets(storage: &Storage) -> Result<Vec<Budget>> {
    let mut found = Vec::new();
    for (entry, _) in storage.list(COUNTS)? {
        if Hex::<16>::parse(&entry[COUNTS.len()..]).is_none() {
            continue; // a lock, or a draft that a crash left
        }
        let Some(bytes) = storage.get(&entry)? else { continue };
        let shown: Shown = json::read(&bytes).map_err(|error| {
            Error::Corrupt(format!("what was counted under {entry} is damaged: {error}."))
        })?;
        let most = |of: &BTreeMap<String, u64>| {
            of.iter().max_by_key(|(_, used)| **used).map(|(name, used)| (name.clone(), *used))
        };
        let rows = most(&shown.segments).map(|(id, used)| Budget {
            name: format!("flooded scores of rows of segment {id}"),
            used,
            allowed: shown.allowed.map(|allowed| allowed.rows),
        });
        let keys = most(&shown.keys).map(|(key, used)| Budget {
            name: format!("flooded scores under the query key of key {key}"),
            used,
            allowed: shown.allowed.map(|allowed| allowed.keys),
        });
        found.extend(rows.into_iter().chain(keys));
    }
    Ok(found)
}

fn cost(deviation: f64) -> u64 {
    (WIDEST / deviation).powi(2).ceil() as u64
}

/// How many scores with the widest noise may be shown of a secret that moves them by `noise`.
fn allowance(noise: f64) -> u64 {
    (SHARE * (WIDEST / noise).powi(2)) as u64
}

/// What is said where nothing of it would be known to a later process.
pub fn uncounted() -> Error {
    Error::Storage(
        "what others are shown is counted where the next process finds it, and this client remembers nothing. Give it a folder."
            .to_owned(),
    )
}

/// That noise of this deviation is neither too little to hide anything nor too much to rank by.
///
/// # Errors
/// [`Error::Input`].
pub fn check_deviation(deviation: f64) -> Result<()> {
    match Flood::new(deviation) {
        Ok(_) => Ok(()),
        Err(ciphervec_owner::Error::Range { .. }) => Error::input(format!(
            "flooding must be a standard deviation of 2^-12 to 2^-4, as a cosine; got {deviation}."
        )),
        Err(error) => Err(error.into()),
    }
}

/// What is counted of one index: here, and by a client of an earlier release in a place of its own.
struct Counted {
    here: Shown,
    before: Shown,
}

impl Counted {
    fn of_rows(&self, id: SegmentId) -> u64 {
        self.sum(|shown| &shown.segments, &id.to_string())
    }

    fn of_key(&self, name: &str) -> u64 {
        self.sum(|shown| &shown.keys, name)
    }

    fn sum(&self, of: impl Fn(&Shown) -> &BTreeMap<String, u64>, name: &str) -> u64 {
        let used = |shown| of(shown).get(name).copied().unwrap_or(0);
        used(&self.here).saturating_add(used(&self.before))
    }
}

impl View<'_> {
    fn flooding_entry(&self) -> String {
        let spec = blake3::hash(&self.owner.spec().to_bytes()).to_hex();
        format!("{COUNTS}{}", &spec[..32])
    }

    fn query_key(&self, epoch: u32) -> String {
        format!("{} epoch {epoch}", self.owner.key_id())
    }

    async fn shown_to_others(&self, host: &dyn Host) -> Result<Counted> {
        let read = async |entry: &str| {
            let Some(bytes) = host.get(entry).await? else { return Ok(Shown::default()) };
            json::read(&bytes).map_err(|error| {
                Error::Corrupt(format!(
                    "what this client has counted of {} under {entry} is damaged ({error}), and nothing is shown to others until it is \
                     there again. Seal the rows again with optimize and a new query key, and delete it, if there is no copy.",
                    self.name()
                ))
            })
        };
        let here = read(&self.flooding_entry()).await?;
        Ok(Counted { here, before: read(&former::of_counts(self.owner.spec())).await? })
    }

    async fn keep_shown(&self, host: &dyn Host, shown: &Shown) -> Result<()> {
        let bytes = serde_json::to_vec(shown).map_err(|error| Error::Storage(error.to_string()))?;
        host.put(&self.flooding_entry(), &bytes).await
    }

    /// What results for others cost with noise of this deviation, and how many may still be shown, of so many rows under the query key of
    /// this epoch. Where another key `follows` by itself, one that is used up keeps no query back but those that no key has room for.
    pub async fn flooding_plan(
        &self,
        host: &dyn Host,
        deviation: f64,
        live: usize,
        (epoch, follows): (u32, bool),
    ) -> Result<FloodingPlan> {
        check_deviation(deviation)?;
        let hints = self.hints()?;
        let shown = self.shown_to_others(host).await?;
        let (each, rows, keys) = (cost(deviation), allowance(hints.row), allowance(hints.key));
        let most = self.directory.segments().map(|(id, ..)| shown.of_rows(id)).max().unwrap_or(0);
        let under = shown.of_key(&self.query_key(epoch));
        let (rows_an_epoch, rows_left) = (keys / each, keys.saturating_sub(under) / each);
        let live = live.max(1) as u64;
        let whole = |rows_of_a_key: u64| match follows {
            true if rows_an_epoch >= live => u64::MAX,
            _ => rows_of_a_key / live,
        };
        Ok(FloodingPlan {
            deviation,
            queries: (rows / each).min(whole(rows_an_epoch)),
            queries_left: (rows.saturating_sub(most) / each).min(whole(rows_left)),
            rows_an_epoch,
            rows_left,
        })
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
        let hints = self.hints()?;
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
        let check = |used: u64, more: u64, allowed: u64, next: &str| {
            if used.saturating_add(more) <= allowed {
                return Ok(());
            }
            Err(Error::Exhausted(format!(
                "others have been shown as many scores {next} ({used} of {allowed} are used, in scores with noise of 2^-4), or flood with \
                 more noise."
            )))
        };
        let (of_rows, of_key) = (queries.saturating_mul(each), asked.saturating_mul(each));
        for id in &segments {
            let again = self.face.said("reseal");
            let next = format!(
                "of these rows as their noise hides. Seal them again with optimize({again})"
            );
            check(shown.of_rows(*id), of_rows, allowance(hints.row), &next)?;
        }
        let key = self.query_key(epoch);
        check(
            shown.of_key(&key),
            of_key,
            allowance(hints.key),
            "as the query key of this epoch hides. Begin another with rotate_query_key(), rank fewer rows",
        )?;
        shown.here.allowed =
            Some(Allowed { rows: allowance(hints.row), keys: allowance(hints.key) });
        let Shown { keys, segments: rows, .. } = &mut shown.here;
        *keys.entry(key).or_default() += of_key;
        segments.iter().for_each(|id| *rows.entry(id.to_string()).or_default() += of_rows);
        self.keep_shown(host, &shown.here).await?;
        Ok(flood)
    }

    /// Refuses a flood where it hides nothing.
    fn hints(&self) -> Result<Hints> {
        if self.owner.spec().mode() != Mode::Sealed {
            return self.refuse_others("results");
        }
        let written: BTreeSet<_> = self
            .directory
            .segments()
            .filter_map(|(id, ..)| match self.directory.origin(id) {
                Some(Origin::Writer(name)) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        if written.is_empty() {
            return Ok(self.owner.hints(self.directory)?);
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
            self.face.quoted(self.owner.spec().mode().as_str()),
            self.face.quoted("sealed-index")
        ))
    }

    /// Nor is what segments of release 0.1 give.
    pub fn refuse_outdated<T>(&self) -> Result<T> {
        Error::input(format!(
            "{} has segments of release 0.1, whose results carry noise of the key and are the key owner's own. optimize() seals them again.",
            self.name()
        ))
    }
}
