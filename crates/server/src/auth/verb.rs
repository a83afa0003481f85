//! Verb: what a token may do, by the name that token files and command lines use. Server side.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a token may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Read a collection's state and blobs.
    Read,
    /// Ask questions, and read the collection's description.
    Query,
    /// Add segments that writers sealed, and nothing else: what a device has that only adds.
    Append,
    /// Commit changes of rows and upload blobs: what an owner has from day to day.
    Write,
    /// Run programs, on inputs that are sent and on kept ones, and read what programs there are.
    Run,
    /// Send a program's evaluation keys, and keep, replace and remove inputs under one's own.
    Keep,
    /// Create, drop, change keys and descriptions, purge, compact, verify, snapshot and restore;
    /// store and remove programs; every other verb too.
    Admin,
    /// Read the metrics.
    Metrics,
}

impl Verb {
    /// What an owner's client needs from day to day.
    pub const OWNER: [Verb; 5] = [Verb::Query, Verb::Read, Verb::Write, Verb::Run, Verb::Keep];

    /// The permission of that name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = <Self as clap::ValueEnum>::value_variants().iter().copied();
        all.find(|verb| verb.as_str() == name)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Read => "read",
            Verb::Query => "query",
            Verb::Append => "append",
            Verb::Write => "write",
            Verb::Run => "run",
            Verb::Keep => "keep",
            Verb::Admin => "admin",
            Verb::Metrics => "metrics",
        }
    }
}
