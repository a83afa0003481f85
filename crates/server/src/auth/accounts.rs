//! Accounts: what each token and identity uses of its limits, now and today. For the gate; whoever has no limits leaves
//! nothing here once its requests are answered.
//!
//! Rates are by a clock that never goes back, and days never do. A day's queries are noted on disk before they are
//! answered, some ahead at a time: a crash costs a token these, and gives it none.

use super::limits::{Full, Limits, Rate};
use super::usage::{Counted, Usage};
use dashmap::DashMap;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota};
use jiff::Timestamp;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

const DAY: i64 = 24 * 3600;
/// Of a day's queries one part of so many is noted ahead.
const AHEAD: u64 = 128;

/// Why a request was turned away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Turned {
    /// As many are in flight already.
    InFlight(usize),
    /// The rate, and when the next may come.
    Rate(Rate, Duration),
    /// The queries of a day, and how long until the next.
    Queries(NonZeroU64, Duration),
    /// It asks more queries at once than a day has.
    TooMany(NonZeroU64),
    /// The usage file can't be used; why, for the log.
    Uncounted(String),
    /// Its scope would have more stored than it may.
    Full(Full),
}

/// The accounts of all who ask.
pub struct Accounts {
    held: DashMap<Box<str>, Arc<Account>>,
    per_token: usize,
    usage: Option<Usage>,
}

#[derive(Default)]
struct Account {
    in_flight: AtomicUsize,
    /// One of each rate that it came with: a subject's tokens may have several, and none gives another's burst anew.
    buckets: RwLock<Vec<Bucket>>,
    day: Mutex<Today>,
}

struct Bucket {
    rate: Rate,
    burst: NonZeroU32,
    cells: DefaultDirectRateLimiter,
    used: Mutex<Instant>,
}

/// Queries of a day: those that were asked, and those that are noted as asked.
#[derive(Clone, Copy, Default)]
struct Today {
    known: bool,
    noted: Counted,
    asked: u64,
}

impl Accounts {
    /// Nobody has used anything yet, but for what a usage file says of days.
    pub fn new(per_token: usize, usage: Option<&Path>) -> Self {
        Accounts { held: DashMap::new(), per_token, usage: usage.map(Usage::at) }
    }

    /// One more request of that token.
    ///
    /// # Errors
    /// [`Turned::InFlight`], [`Turned::Rate`].
    pub fn enter(self: &Arc<Self>, id: &str, limits: &Limits) -> Result<InFlightGuard, Turned> {
        // Counted under the map's lock: whoever takes an account off sees it in use.
        let account = match self.held.get(id) {
            Some(account) => account.clone().counted(),
            None => self.held.entry(id.into()).or_default().clone().counted(),
        };
        let guard = InFlightGuard { all: self.clone(), account, id: id.into() };
        if guard.account.in_flight.load(Ordering::Relaxed) > self.per_token {
            return Err(Turned::InFlight(self.per_token));
        }
        if let Some(rate) = limits.rate {
            guard.account.take(rate, limits.burst.unwrap_or(rate.count()))?;
        }
        Ok(guard)
    }

    /// So many queries more of that token today.
    ///
    /// # Errors
    /// [`Turned::Queries`], [`Turned::TooMany`], [`Turned::Uncounted`].
    pub async fn ask(
        self: &Arc<Self>,
        id: &str,
        quota: NonZeroU64,
        queries: u64,
    ) -> Result<Asked, Turned> {
        let account = self.held.entry(id.into()).or_default().clone();
        let now = Timestamp::now().as_second();
        // What needs the disk waits elsewhere.
        let quick = account
            .day
            .try_lock()
            .ok()
            .map(|mut today| today.ask(quota, queries, now, |_| Err(String::new())));
        let day = match quick {
            Some(Ok(day)) => day,
            Some(Err(refused @ (Turned::Queries(..) | Turned::TooMany(_)))) => return Err(refused),
            Some(Err(_)) | None => {
                let (all, account, id) = (self.clone(), account.clone(), Box::<str>::from(id));
                let slow = move || all.ask_slowly(&account, &id, quota, queries, now);
                let done = tokio::task::spawn_blocking(slow).await;
                done.unwrap_or_else(|error| Err(Turned::Uncounted(error.to_string())))?
            }
        };
        Ok(Asked { account, day, queries })
    }

    /// The same for callers without an event loop, which may wait for the disk.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_and_wait(&self, id: &str, quota: NonZeroU64, queries: u64) -> Result<Asked, Turned> {
        let account = self.held.entry(id.into()).or_default().clone();
        let now = Timestamp::now().as_second();
        let day = self.ask_slowly(&account, id, quota, queries, now)?;
        Ok(Asked { account, day, queries })
    }

    fn ask_slowly(
        &self,
        account: &Account,
        id: &str,
        quota: NonZeroU64,
        queries: u64,
        now: i64,
    ) -> Result<i64, Turned> {
        let none = "there is no file to count them in; name one with --usage";
        let usage = self.usage.as_ref().ok_or_else(|| Turned::Uncounted(none.into()))?;
        usage.check().map_err(Turned::Uncounted)?;
        let mut today = account.today();
        if !today.known {
            let noted = usage.read(id).map_err(Turned::Uncounted)?;
            *today = Today { known: true, noted, asked: noted.queries };
        }
        today.ask(quota, queries, now, |noted| usage.write(&[(id, noted)]))
    }

    /// Forgets accounts that begin anew just as well.
    pub fn sweep(&self) {
        let today = Timestamp::now().as_second().div_euclid(DAY);
        self.held.retain(|_, account| !account.is_idle(today));
        if let Some(Err(error)) = self.usage.as_ref().map(|usage| usage.forget(today)) {
            tracing::warn!(error, "counts of long ago stay in the usage file");
        }
    }

    /// Notes exactly what was asked, before the server ends, and gives the usage file back.
    pub fn close(&self) {
        let Some(usage) = &self.usage else { return };
        let accounts: Vec<_> =
            self.held.iter().map(|held| (held.key().clone(), held.value().clone())).collect();
        let mut counts = Vec::new();
        for (id, account) in &accounts {
            let mut today = account.today();
            if today.known && today.noted.queries > today.asked {
                today.noted.queries = today.asked;
                counts.push((&**id, today.noted));
            }
            // Another may count meanwhile: what it noted is read before more is asked.
            today.known = false;
        }
        let written = if counts.is_empty() { Ok(()) } else { usage.write(&counts) };
        if let Err(error) = written {
            tracing::error!(error, "queries that were noted ahead stay counted");
        }
        usage.close();
    }
}

impl Account {
    fn counted(self: Arc<Self>) -> Arc<Self> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self
    }

    fn today(&self) -> MutexGuard<'_, Today> {
        self.day.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one request of this rate, and of what the other rates have left.
    fn take(&self, rate: Rate, burst: NonZeroU32) -> Result<(), Turned> {
        let same = |bucket: &Bucket| (bucket.rate, bucket.burst) == (rate, burst);
        let take = |buckets: &[Bucket]| {
            let mut own = Ok(());
            for bucket in buckets {
                let took = bucket.take();
                if same(bucket) {
                    own = took;
                }
            }
            own
        };
        let held = self.buckets.read().unwrap_or_else(PoisonError::into_inner);
        if held.iter().any(same) {
            return take(&held);
        }
        drop(held);
        let mut held = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        if !held.iter().any(same) {
            held.retain(|bucket| !bucket.is_full());
            held.push(Bucket::new(rate, burst));
        }
        take(&held)
    }

    /// Whether nothing is under way, the buckets are full again, and no queries of `today` or later are counted.
    fn is_idle(&self, today: i64) -> bool {
        let buckets = self.buckets.read().unwrap_or_else(PoisonError::into_inner);
        self.in_flight.load(Ordering::Relaxed) == 0
            && buckets.iter().all(Bucket::is_full)
            && self.today().noted.day < today
    }
}

impl Bucket {
    fn new(rate: Rate, burst: NonZeroU32) -> Self {
        // A rate of at most a million a second is never no time at all.
        let each = rate.each().max(Duration::from_nanos(1));
        let quota = Quota::with_period(each).unwrap_or(Quota::per_second(NonZeroU32::MIN));
        let cells = DefaultDirectRateLimiter::direct(quota.allow_burst(burst));
        Bucket { rate, burst, cells, used: Mutex::new(Instant::now()) }
    }

    fn take(&self) -> Result<(), Turned> {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.cells.check().map_err(|until| {
            Turned::Rate(self.rate, until.wait_time_from(DefaultClock::default().now()))
        })
    }

    fn is_full(&self) -> bool {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.elapsed() > self.rate.each() * self.burst.get()
    }
}

impl Today {
    /// So many queries more, at `now` in seconds, and their day; `note` makes durable what is counted from now on.
    fn ask(
        &mut self,
        quota: NonZeroU64,
        queries: u64,
        now: i64,
        note: impl FnOnce(Counted) -> Result<(), String>,
    ) -> Result<i64, Turned> {
        if queries > quota.get() {
            return Err(Turned::TooMany(quota));
        }
        // A clock that is set back begins no day anew.
        let day = now.div_euclid(DAY).max(self.noted.day);
        let (asked, noted) =
            if day > self.noted.day { (0, 0) } else { (self.asked, self.noted.queries) };
        let after = asked.saturating_add(queries);
        if after > quota.get() {
            let wait = (day + 1).saturating_mul(DAY).saturating_sub(now);
            return Err(Turned::Queries(quota, Duration::from_secs(wait.unsigned_abs())));
        }
        if after > noted || !self.known {
            let ahead = after.saturating_add(quota.get() / AHEAD).min(quota.get());
            let noted = Counted { day, queries: ahead };
            note(noted).map_err(Turned::Uncounted)?;
            self.noted = noted;
        }
        self.asked = after;
        Ok(day)
    }
}

/// A request in flight until this is dropped.
pub struct InFlightGuard {
    all: Arc<Accounts>,
    account: Arc<Account>,
    id: Box<str>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let left = self.account.in_flight.fetch_sub(1, Ordering::Relaxed);
        if left == 1 {
            // Whoever has no limits has none of what is looked at here.
            self.all.held.remove_if(&self.id, |_, account| {
                let buckets = account.buckets.read().unwrap_or_else(PoisonError::into_inner);
                buckets.is_empty()
                    && account.in_flight.load(Ordering::Relaxed) == 0
                    && !account.today().known
            });
        }
    }
}

/// Queries that are counted.
pub struct Asked {
    account: Arc<Account>,
    day: i64,
    queries: u64,
}

impl Asked {
    /// They were refused, and answered nothing: they can be asked again.
    pub fn take_back(self) {
        let mut today = self.account.today();
        if today.noted.day == self.day {
            today.asked = today.asked.saturating_sub(self.queries);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(usage: Option<&Path>) -> Arc<Accounts> {
        Arc::new(Accounts::new(2, usage))
    }

    fn limits(json: &str) -> Limits {
        serde_json::from_str(json).expect("limits")
    }

    fn quota(queries: u64) -> NonZeroU64 {
        NonZeroU64::new(queries).expect("a quota")
    }

    #[test]
    fn a_burst_is_let_through_and_the_rest_is_told_how_long_to_wait() {
        let accounts = accounts(None);
        let limits = limits(r#"{"rate": "1/h", "burst": 3}"#);
        for _ in 0..3 {
            assert!(accounts.enter("ann", &limits).is_ok());
        }
        let Err(Turned::Rate(_, wait)) = accounts.enter("ann", &limits) else { panic!("too many") };
        assert!(wait <= Duration::from_secs(3600) && wait > Duration::from_secs(3500), "{wait:?}");
        assert!(accounts.enter("bob", &limits).is_ok());
        // A sweep gives nobody a burst back; a change by the operator does.
        accounts.sweep();
        assert!(accounts.enter("ann", &limits).is_err());
        let wider = super::super::Limits { burst: NonZeroU32::new(4), ..limits };
        assert!(accounts.enter("ann", &wider).is_ok());
        assert!(accounts.enter("ann", &Limits::default()).is_ok());
    }

    #[test]
    fn no_rate_of_a_subject_gives_the_burst_of_another_anew() {
        let accounts = accounts(None);
        let [slow, other, none] =
            [r#"{"rate": "1/h", "burst": 3}"#, r#"{"rate": "1/h", "burst": 5}"#, "{}"].map(limits);
        let mut let_in = 0;
        for turn in 0..300 {
            let limits = [&slow, &none, &other][turn % 3];
            let entered = accounts.enter("ann", limits).is_ok();
            let_in += usize::from(entered && *limits != none);
            if turn % 50 == 0 {
                accounts.sweep();
            }
        }
        // The wider has 5, of which the narrower's are taken, too: 4 that came since, one of them refused, and one before.
        assert_eq!(let_in, 5);
    }

    #[test]
    fn so_many_are_in_flight_and_whoever_has_no_limits_leaves_nothing() {
        let accounts = accounts(None);
        let none = Limits::default();
        let held = [accounts.enter("ann", &none), accounts.enter("ann", &none)];
        assert_eq!(accounts.enter("ann", &none).err(), Some(Turned::InFlight(2)));
        drop(held);
        assert!(accounts.enter("ann", &none).is_ok());
        assert!(accounts.held.is_empty());
    }

    #[test]
    fn a_day_has_its_queries_whatever_the_clock_does() {
        let mut today = Today { known: true, ..Today::default() };
        let mut ask = |day: i64, queries| today.ask(quota(10), queries, day * DAY + 5, |_| Ok(()));
        assert_eq!(ask(100, 9), Ok(100));
        assert_eq!(ask(100, 2), Err(Turned::Queries(quota(10), Duration::from_secs(86_395))));
        assert_eq!(ask(100, 1), Ok(100));
        assert_eq!(
            ask(99, 1).err(),
            Some(Turned::Queries(quota(10), Duration::from_secs(2 * 86_400 - 5)))
        );
        assert_eq!(ask(101, 10), Ok(101));
        assert!(ask(100, 1).is_err() && ask(101, 1).is_err());
        assert_eq!(ask(102, 11), Err(Turned::TooMany(quota(10))));
    }

    #[test]
    fn nothing_is_asked_that_could_not_be_noted() {
        let mut today = Today { known: true, ..Today::default() };
        let mut noted = Vec::new();
        for _ in 0..1000 {
            let note = |count: Counted| {
                noted.push(count.queries);
                Ok(())
            };
            today.ask(quota(1000), 1, 0, note).expect("counted");
            assert!(noted.last() >= Some(&today.asked));
        }
        assert!(noted.len() <= 128 && noted.last() == Some(&1000), "{noted:?}");
        let refused = today.ask(quota(2000), 1, 0, |_| Err("full".into()));
        assert_eq!((refused, today.asked), (Err(Turned::Uncounted("full".into())), 1000));
    }

    #[tokio::test]
    async fn a_day_goes_on_after_a_crash_and_after_an_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("usage.redb");
        let asked = async |accounts: &Arc<Accounts>, most: u64| {
            let mut count = 0;
            while count < most && accounts.ask("ann", quota(1000), 1).await.is_ok() {
                count += 1;
            }
            count
        };
        let first = accounts(Some(&path));
        assert_eq!(asked(&first, 300).await, 300);
        // As after a kill: nothing is told to it.
        drop(first);
        let second = accounts(Some(&path));
        assert_eq!(asked(&second, 200).await, 200);
        second.close();
        let third = accounts(Some(&path));
        let left = asked(&third, 10_000).await;
        assert!((493..=500).contains(&left), "{left}: at most 7 are noted ahead, and lost");
        assert!(matches!(third.ask("ann", quota(1000), 1).await, Err(Turned::Queries(..))));
        let Ok(bob) = third.ask("bob", quota(10), 10).await else { panic!("he asked nothing") };
        bob.take_back();
        assert!(third.ask("bob", quota(10), 10).await.is_ok());
        let other = accounts(Some(&path));
        let Err(Turned::Uncounted(why)) = other.ask("ann", quota(1000), 1).await else {
            panic!("two servers count in one file")
        };
        assert!(why.contains("another server counts in it"), "{why}");
        assert!(matches!(accounts(None).ask("a", quota(9), 1).await, Err(Turned::Uncounted(_))));
    }
}
