//! Where the sealed bytes of collections lie, and what searches them: a server, a folder or memory. Holds no key and opens nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use ciphervec_owner::search::TreeLender;
use ciphervec_owner::{IndexSpec, SegmentId};
use serde::Deserialize;

use crate::belief::trust::{Lineage, Trust};
use crate::change::{Change, StoredSegment};
use crate::change::{CollectionRow, Listing};
use crate::error::{Error, Result};
use crate::hex::Hex;
use crate::host::{Head, Host, Later, Sink};

/// Versions and lengths are below it.
pub const LARGEST: u64 = 1 << 48;

/// Opens a description with the keys that the client was given.
pub type Lineages = Box<dyn Fn(&[u8]) -> Option<Lineage> + Send + Sync>;

/// Compares the BLAKE3 of evaluation keys with what the owner's state says.
pub type Check<'a> = &'a dyn Fn(&[u8; 32]) -> Result<()>;

/// Is shown a description before anything is taken from it or remembered, and may refuse it.
pub type Accept<'a> = &'a dyn Fn(&[u8]) -> Result<()>;

/// What a server holds of the keys that a query needs.
pub enum Evaluated {
    /// The commit that the answer was computed on.
    Answered(u64),
    /// It has not got the evaluation keys of the query's session, or not any more.
    KeysMissing,
}

/// What was found of what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Verified {
    /// Files that were read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that nothing refers to.
    pub strays: u64,
}

/// Where the body of a 200 goes, from its start again after a lost connection.
pub trait Receiver: Sink {
    /// The answer that came, with what of its body is not dealt with.
    fn answer(&mut self) -> Option<(Head, Vec<u8>)>;
    /// Why it was not taken, where that is no fault of the connection's.
    fn refused(&mut self) -> Option<Error> {
        None
    }
}

/// Version and head, as the answer to a commit and the headers of other answers have them.
#[derive(Deserialize)]
pub struct Committed {
    pub version: u64,
    head: Hex<32>,
}

impl Committed {
    /// Of what an answer says of both.
    pub fn new(version: Option<u64>, head: Option<&str>, server: &str) -> Result<Self> {
        let head = head.and_then(Hex::parse);
        match (version.filter(|version| *version < LARGEST), head) {
            (Some(version), Some(head)) => Ok(Committed { version, head }),
            _ => Err(Error::server(format!(
                "{server} answered without a version and a head. Check the versions on both sides, and from a page of another origin that it \
                 exposes the headers ciphervec-version and ciphervec-head."
            ))),
        }
    }

    pub fn head(&self) -> String {
        self.head.to_string()
    }
}

/// What the headers of an answer say of the state that it was computed on.
pub fn answered_on(head: &Head, server: &str) -> Result<(u64, String)> {
    let version = head.count("ciphervec-version");
    let committed = Committed::new(version, head.header("ciphervec-head"), server)?;
    Ok((committed.version, committed.head()))
}

/// One message of queries.
#[cfg_attr(
    not(feature = "folder"),
    expect(dead_code, reason = "a server knows what it is and has")
)]
pub struct Asked<'a> {
    pub spec: &'a IndexSpec,
    pub query: &'a [u8],
    /// Who expands it where it is answered in this process.
    pub lender: Option<&'a dyn TreeLender>,
    /// Segments that are passed over: where they are damaged, they need not be read.
    pub without: &'a [SegmentId],
    /// Is told the BLAKE3 of the collection's evaluation keys as the server says them.
    pub check: &'a dyn Fn(Option<&[u8; 32]>) -> Result<()>,
    /// Is told before it is sent another time.
    pub again: &'a dyn Fn() -> Later<'a, Result<()>>,
}

/// A table that rows are fetched from in private, as a server says it is.
#[derive(Clone, Debug)]
pub struct FetchOffer {
    pub table: [u8; 16],
    pub place_bytes: usize,
    /// Places of rows that have a table of their own.
    pub long_rows: Vec<u32>,
    pub long_place_bytes: usize,
    pub table_bytes: u64,
    /// For one row, and for ten.
    pub seconds: [f64; 2],
}

/// Whether rows are fetched in private.
pub enum Offered {
    Table(FetchOffer),
    /// Why not.
    Refused(String),
}

/// What came of a private fetch.
pub enum Fetched {
    Answer(Vec<u8>),
    /// The server has not got the evaluation keys of the session, or not any more.
    KeysMissing,
}

/// A server, as rows are fetched from it.
#[async_trait(?Send)]
pub trait Fetching: Send + Sync {
    /// The table of a blob in the present state.
    async fn offer(&self, host: &dyn Host, blob: &str) -> Result<Offered>;

    /// Gives the server the evaluation keys of a session.
    async fn bring_keys(&self, host: &dyn Host, keys: &[u8]) -> Result<()>;

    /// Has a query answered from a table, in `most` bytes. [`crate::Error::Conflict`] when it is not that of the present state.
    async fn fetch(
        &self,
        host: &dyn Host,
        blob: &str,
        table: &[u8; 16],
        query: &[u8],
        most: usize,
    ) -> Result<Fetched>;

    /// Whether these blobs, of so many bytes, are all kept here, so that reading them asks for nothing.
    async fn holds(
        &self,
        host: &dyn Host,
        blobs: &[(SegmentId, &'static str, u64)],
    ) -> Result<bool>;

    /// So many bytes of a blob, from one on. [`crate::Error::Conflict`] when it is gone meanwhile.
    async fn part(
        &self,
        host: &dyn Host,
        blob: (SegmentId, &str),
        from: u64,
        length: u64,
    ) -> Result<Vec<u8>>;
}

/// One collection, as it was in the latest commit seen.
#[async_trait(?Send)]
pub trait CollectionStore: Send + Sync {
    /// What was seen of it.
    fn trust(&self) -> &Trust;

    /// Whether it is there in a later process.
    fn lasts(&self) -> bool {
        true
    }

    /// Whether this process computes its answers.
    fn computes(&self) -> bool {
        false
    }

    /// As it is known here.
    fn listing(&self) -> Arc<Listing>;

    /// What rows are fetched from, where that is a server.
    fn fetching(&self) -> Option<&dyn Fetching> {
        None
    }

    /// Moves on to the latest commit of whoever else writes; whether there was a new one.
    async fn refresh(&self, host: &dyn Host) -> Result<bool>;

    /// The commit that there is by now, where this only reads and is behind.
    fn newer(&self) -> Option<u64> {
        None
    }

    /// What is shown was found to be wrong: the next [`Self::refresh`] reads it again, whatever it is called.
    fn doubt(&self) {}

    /// Makes a change durable, all or nothing. [`crate::Error::Conflict`] when others were first, [`crate::Error::CommitUncertain`] when
    /// the answer got lost.
    async fn commit(&self, host: &dyn Host, change: &Change) -> Result<()>;

    /// One blob. [`crate::Error::Conflict`] when it is gone meanwhile.
    async fn read(&self, host: &dyn Host, segment: SegmentId, blob: &str) -> Result<Arc<[u8]>>;

    /// The same blob of several segments is read next.
    async fn prefetch(
        &self,
        _host: &dyn Host,
        _segments: &[Arc<StoredSegment>],
        _blob: &str,
    ) -> Result<()> {
        Ok(())
    }

    /// Blobs that were read and wait to be found right.
    fn unkept(&self) -> Vec<(SegmentId, String)> {
        Vec::new()
    }

    /// A blob was found to be the owner's or a writer's: from now on it may be kept.
    async fn keep(&self, _host: &dyn Host, _segment: SegmentId, _blob: &str) -> Result<()> {
        Ok(())
    }

    /// Blobs read, of this segment and name or all of them, may be wrong: none is kept. Whether reading them again may give others.
    async fn discard(
        &self,
        _host: &dyn Host,
        _segment: Option<SegmentId>,
        _blob: Option<&str>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Whether there is an attachment of this name.
    fn has_attachment(&self, name: &str) -> bool {
        self.listing().attachments.contains_key(name)
    }

    /// A blob that belongs to the whole collection.
    async fn attachment(&self, host: &dyn Host, name: &str) -> Result<Vec<u8>>;

    /// Has one message of queries answered into `sink`. [`crate::Error::Conflict`] when the store has moved on to a state that this query
    /// does not suit.
    async fn evaluate(
        &self,
        host: &dyn Host,
        asked: &Asked<'_>,
        sink: &mut dyn Receiver,
    ) -> Result<Evaluated>;

    /// Has queries answered of the session that these evaluation keys are of; not where sessions are not known.
    async fn hold(&self, host: &dyn Host, evaluation: &[u8]) -> Result<bool>;

    /// Reads and checks every stored block.
    async fn verify(&self, host: &dyn Host) -> Result<Verified>;

    /// Deletes what only earlier states refer to.
    async fn purge(&self, host: &dyn Host) -> Result<()>;

    /// The same after a change that is made.
    async fn tidy(&self, host: &dyn Host) -> Result<()> {
        self.purge(host).await
    }

    /// Pins the hash of this epoch's evaluation keys, and of the sealed key pair, after `check` on the keys when first seen.
    async fn pin_evaluation(&self, _host: &dyn Host, _epoch: u32, _check: Check<'_>) -> Result<()> {
        Ok(())
    }
}

/// The collections of one client.
#[async_trait(?Send)]
pub trait Database: Send + Sync {
    /// Where they are, as messages say it.
    fn place(&self) -> &str;

    /// Every collection, by name.
    async fn rows(&self, host: &dyn Host) -> Result<Vec<CollectionRow>>;

    /// Makes a collection of this description.
    async fn create(
        &self,
        host: &dyn Host,
        name: &str,
        meta: Vec<u8>,
        attachments: BTreeMap<&'static str, Vec<u8>>,
        lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>>;

    /// Opens one that is there.
    async fn open(
        &self,
        host: &dyn Host,
        name: &str,
        accept: Accept<'_>,
        lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>>;

    /// The same, to be read as it is stored, beside whoever writes to it.
    async fn open_beside(
        &self,
        host: &dyn Host,
        name: &str,
        lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        self.open(host, name, &|_| Ok(()), lineage).await
    }

    /// The same without comparing it with what was seen of it before, which is `seen`.
    async fn open_anew(
        &self,
        host: &dyn Host,
        name: &str,
        seen: &Trust,
        lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>>;

    /// Deletes a collection and everything in it.
    async fn delete(&self, host: &dyn Host, name: &str) -> Result<()>;

    /// Drops what was pinned and seen of a collection.
    async fn forget(&self, host: &dyn Host, name: &str) -> Result<()>;

    /// What was seen of a collection.
    async fn trust(&self, host: &dyn Host, name: &str) -> Result<Trust>;
}
