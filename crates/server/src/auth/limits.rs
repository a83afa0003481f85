//! Limits of one token or identity: how fast and how often it may ask, and how much may be stored. For token files,
//! files of issuers and command lines; a limit that is left out limits nothing.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;
use std::time::Duration;
use utoipa::ToSchema;

/// The most requests of a rate, and of a burst.
const MOST: u32 = 1_000_000;

/// Requests in a second, a minute or an hour: `20/s`, `100/m`, `1000/h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate {
    count: NonZeroU32,
    unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Second,
    Minute,
    Hour,
}

impl Unit {
    const ALL: [(Unit, &'static str, u64); 3] =
        [(Unit::Second, "s", 1), (Unit::Minute, "m", 60), (Unit::Hour, "h", 3600)];

    fn row(self) -> (&'static str, u64) {
        let row = Self::ALL.into_iter().find(|row| row.0 == self);
        row.map_or(("s", 1), |(_, name, seconds)| (name, seconds))
    }
}

impl Rate {
    /// How many requests may come at once where no burst is named.
    pub fn count(self) -> NonZeroU32 {
        self.count
    }

    /// The time that one request takes of it.
    pub fn each(self) -> Duration {
        Duration::from_secs(self.unit.row().1) / self.count.get()
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(count, unit)| {
            let unit = Unit::ALL.into_iter().find(|row| row.1 == unit)?.0;
            let count = count.parse().ok().and_then(NonZeroU32::new)?;
            (count.get() <= MOST).then_some(Rate { count, unit })
        });
        parsed.ok_or_else(|| {
            format!("{text:?} is no rate; write 20/s, 100/m or 1000/h, of at most {MOST} requests")
        })
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.count, self.unit.row().0)
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> String {
        rate.to_string()
    }
}

/// What a token or an identity may use.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Requests in a second, a minute or an hour, such as `20/s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, nullable = false, required = false)]
    pub rate: Option<Rate>,
    /// Requests at once after a pause; as many as the rate names if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32, minimum = 1, nullable = false, required = false)]
    pub burst: Option<NonZeroU32>,
    /// Queries, private fetches, lookups and runs of a day, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64, minimum = 1, nullable = false, required = false)]
    pub queries_per_day: Option<NonZeroU64>,
    /// Bytes that all collections and tables of its scope may have together after it has added to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, required = false)]
    pub max_bytes: Option<u64>,
    /// Rows, as bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, required = false)]
    pub max_rows: Option<u64>,
}

/// What is stored, as it is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored {
    /// Bytes.
    Bytes,
    /// Rows.
    Rows,
}

/// A limit of what is stored that would be passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full {
    /// Which.
    pub of: Stored,
    /// What there may be.
    pub most: u64,
    /// What came.
    pub adds: u64,
    /// What there would be.
    pub after: u64,
}

impl Limits {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Limits::default()
    }

    /// Whether what is stored is limited.
    pub fn of_storage(&self) -> bool {
        self.max_bytes.is_some() || self.max_rows.is_some()
    }

    /// Reads a JSON object, as files have it.
    ///
    /// # Errors
    /// What is expected instead.
    pub fn from_json(text: &str) -> Result<Self, String> {
        serde_json::from_str::<Limits>(text).map_err(|error| error.to_string())?.checked()
    }

    /// The limits themselves, if they mean something.
    ///
    /// # Errors
    /// What is expected instead.
    pub fn checked(self) -> Result<Self, String> {
        if self.burst.is_some() && self.rate.is_none() {
            return Err("a burst needs a rate: how fast requests may come again after it".into());
        }
        match self.burst {
            Some(burst) if burst.get() > MOST => {
                Err(format!("a burst has at most {MOST} requests, {burst} came"))
            }
            _ => Ok(self),
        }
    }

    /// Whether what is stored may become `after` by what comes: bytes and rows each. What adds nothing passes.
    ///
    /// # Errors
    /// The limit that is passed.
    pub fn room(&self, adds: [u64; 2], after: [u64; 2]) -> Result<(), Full> {
        let most = [self.max_bytes, self.max_rows];
        for (place, of) in [Stored::Bytes, Stored::Rows].into_iter().enumerate() {
            let (adds, after) = (adds[place], after[place]);
            if let Some(most) = most[place].filter(|&most| adds > 0 && after > most) {
                return Err(Full { of, most, adds, after });
            }
        }
        Ok(())
    }

    /// The smaller of both, limit by limit.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        let slower = |a: Self, b: Self| match (a.rate, b.rate) {
            (Some(rate), Some(of_b)) if rate.each() >= of_b.each() => Some(rate),
            (Some(rate), None) => Some(rate),
            (_, rate) => rate,
        };
        let burst = |limits: Self| limits.burst.or(limits.rate.map(Rate::count));
        Limits {
            rate: slower(self, other),
            burst: least(burst(self), burst(other)),
            queries_per_day: least(self.queries_per_day, other.queries_per_day),
            max_bytes: least(self.max_bytes, other.max_bytes),
            max_rows: least(self.max_rows, other.max_rows),
        }
    }
}

fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(json: &str) -> Limits {
        serde_json::from_str(json).expect("limits")
    }

    #[test]
    fn rates_have_a_unit_and_come_back_as_they_were_written() {
        for (text, milliseconds) in [("20/s", 50), ("100/m", 600), ("1000/h", 3600)] {
            let rate: Rate = text.parse().expect("a rate");
            assert_eq!(
                (rate.to_string(), rate.each()),
                (text.into(), Duration::from_millis(milliseconds))
            );
        }
        for bad in ["", "20", "0/s", "-1/s", "1.5/s", "20/d", "20/s/m", "1000001/s", "/s", "20/"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn whoever_adds_nothing_needs_no_room() {
        let limits = limits(r#"{"max_bytes": 100, "max_rows": 10}"#);
        assert_eq!(limits.room([1, 1], [100, 10]), Ok(()));
        assert_eq!(limits.room([0, 0], [900, 90]), Ok(()));
        let full = |of, most, adds, after| Err(Full { of, most, adds, after });
        assert_eq!(limits.room([1, 1], [101, 10]), full(Stored::Bytes, 100, 1, 101));
        assert_eq!(limits.room([0, 2], [900, 11]), full(Stored::Rows, 10, 2, 11));
        assert_eq!(Limits::default().room([1, 1], [u64::MAX, u64::MAX]), Ok(()));
    }

    #[test]
    fn of_two_grants_the_least_of_each_limit_holds() {
        let one = limits(r#"{"rate": "20/s", "burst": 5, "max_rows": 10}"#);
        let other = limits(r#"{"rate": "60/m", "queries_per_day": 7, "max_rows": 11}"#);
        let least = limits(r#"{"rate": "60/m", "burst": 5, "queries_per_day": 7, "max_rows": 10}"#);
        assert_eq!((one.least(other), other.least(one)), (least, least));
        // A slower rate with a burst of its own is not made wider by another's.
        let named = limits(r#"{"rate": "1/s", "burst": 1}"#);
        let usual = limits(r#"{"rate": "100/s"}"#);
        assert_eq!((named.least(usual), usual.least(named)), (named, named));
        assert_eq!(one.least(Limits::default()), one);
        assert!(limits(r#"{"burst": 5}"#).checked().is_err());
    }
}
