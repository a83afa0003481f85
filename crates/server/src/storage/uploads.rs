//! Unfinished uploads: pieces of large blobs wait on disk until the whole is there.
//!
//! An upload is `<id>.json`, what it is for, and `<id>.part`, what has come of it. Both outlive the
//! server, so that a client goes on where it stopped. Nothing here is promised to be durable: a
//! commit compares the BLAKE3 of all of it, and the commit is fsynced. Bytes that are announced take
//! no room: those that came do, of what all may have and of what one token may.

use super::spool::Spool;
use crate::descriptors;
use crate::hex;
use crate::metrics::Metrics;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};

/// The most unfinished uploads, and those of one token.
const MOST: usize = 4096;
const MOST_OF_ONE: usize = 256;

/// An upload's name.
pub type UploadId = [u8; 16];

/// Limits of all uploads.
#[derive(Clone, Copy, Debug)]
pub struct UploadLimits {
    /// Bytes of one.
    pub largest: u64,
    /// Bytes of all; of one token's half of it, or one upload where that is more.
    pub quota: u64,
    /// How long one is kept after its last piece.
    pub lifetime: Duration,
}

/// Whose upload it is: another collection's or another token's is not there.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Purpose {
    /// The collection.
    pub collection: String,
    /// The id of the token.
    pub token: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ticket {
    purpose: Purpose,
    length: u64,
}

/// How far an upload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Its name.
    pub id: UploadId,
    /// Bytes that have come.
    pub offset: u64,
    /// Bytes in all.
    pub length: u64,
    /// When it goes if nothing comes.
    pub expires: Timestamp,
}

/// The bytes of an upload on their way.
pub trait Pieces {
    /// Why no more of them come.
    type Error: From<UploadError>;

    /// How many there are, where that is known.
    fn length(&self) -> Option<u64>;

    /// The next ones; none at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, Self::Error>> + Send;
}

/// Why an upload did not do what it was asked.
#[non_exhaustive]
#[derive(thiserror::Error, Debug)]
pub enum UploadError {
    /// No such upload of that collection and token.
    #[error("no such upload")]
    NotFound,
    /// More or less than one upload may have.
    #[error("an upload has 1 to {largest} bytes, {length} were asked for")]
    TooLarge {
        /// What is taken.
        largest: u64,
        /// What was asked for.
        length: u64,
    },
    /// What is set aside is full.
    #[error("unfinished uploads {whose}fill the {quota} bytes set aside for them")]
    Quota {
        /// Bytes of all, or of one token.
        quota: u64,
        /// `of this token `, or nothing.
        whose: &'static str,
    },
    /// More than anybody needs at once.
    #[error("there are {count} unfinished uploads already")]
    Many {
        /// How many.
        count: usize,
    },
    /// The upload is not where the request takes it to be.
    #[error("{detail}")]
    Offset {
        /// Bytes that are there.
        offset: u64,
        /// What was taken for granted.
        detail: String,
    },
    /// A piece that is too long.
    #[error("the piece goes beyond the end: {left} bytes are left")]
    Beyond {
        /// Bytes that are still to come.
        left: u64,
    },
    /// The system gives no random bytes for a name.
    #[error("the system gives no random bytes")]
    Random,
    /// No room on the disk.
    #[error("no space left for uploads; nothing was changed: {0}")]
    Full(#[source] io::Error),
    /// The folder takes no writes.
    #[error("the server's folder of uploads takes no writes")]
    ReadOnly(#[source] io::Error),
    /// The system lets this process open no more files for now.
    #[error("the server has as many files open as it may")]
    Descriptors,
    /// The system refused an operation.
    #[error("an upload could not be stored: {0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for UploadError {
    fn from(error: io::Error) -> Self {
        if descriptors::used_up(&error) {
            return Self::Descriptors;
        }
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Self::Full(error)
            }
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => Self::ReadOnly(error),
            _ => Self::Io(error),
        }
    }
}

struct Upload {
    purpose: Purpose,
    length: u64,
    /// Bytes that have come, and when the last did.
    state: Mutex<(u64, Timestamp)>,
    /// Held by the one request that brings a piece.
    writer: tokio::sync::Mutex<()>,
}

impl Upload {
    fn state(&self) -> MutexGuard<'_, (u64, Timestamp)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Held = BTreeMap<UploadId, Arc<Upload>>;

/// All unfinished uploads.
pub struct Uploads {
    spool: Spool,
    limits: UploadLimits,
    metrics: Arc<Metrics>,
    held: Mutex<Held>,
}

impl Uploads {
    /// Finds the uploads that an earlier run left.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn open(spool: Spool, limits: UploadLimits, metrics: Arc<Metrics>) -> io::Result<Self> {
        let folder = spool.path();
        let mut held = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let Some((stem, kind)) = name.to_str().and_then(|name| name.split_once('.')) else {
                continue;
            };
            let Some(id) = hex::parse::<16>(stem) else { continue };
            match (kind, recover(folder, stem)) {
                ("json", Some(upload)) => {
                    held.insert(id, Arc::new(upload));
                }
                (_, None) => remove(folder, stem),
                _ => {}
            }
        }
        let uploads = Uploads { spool, limits, metrics, held: Mutex::new(held) };
        uploads.expire();
        Ok(uploads)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets uploads whose time is over.
    pub fn expire(&self) {
        let now = Timestamp::now();
        let mut held = self.held();
        held.retain(|id, upload| {
            let over = self.expires(upload.state().1) <= now && upload.writer.try_lock().is_ok();
            if over {
                remove(self.spool.path(), &hex::show(id));
            }
            !over
        });
        self.measure(&held);
    }

    fn measure(&self, held: &Held) {
        self.metrics.uploads.set(i64::try_from(held.len()).unwrap_or(i64::MAX));
        self.metrics.upload_bytes.set(taken(held, None));
    }

    fn expires(&self, touched: Timestamp) -> Timestamp {
        let lifetime =
            SignedDuration::try_from(self.limits.lifetime).unwrap_or(SignedDuration::MAX);
        touched.saturating_add(lifetime).unwrap_or(Timestamp::MAX)
    }

    /// Names an upload of `length` bytes. They take room as they come.
    ///
    /// # Errors
    /// [`UploadError::TooLarge`] for one that could never be stored, [`UploadError::Quota`] where
    /// nothing more is taken, [`UploadError::Many`]; those of the disk.
    pub fn create(&self, purpose: Purpose, length: u64) -> Result<Progress, UploadError> {
        let largest = self.limits.largest.min(self.limits.quota);
        if length == 0 || length > largest {
            return Err(UploadError::TooLarge { largest, length });
        }
        self.expire();
        let mut held = self.held();
        let ours = held.values().filter(|upload| upload.purpose.token == purpose.token).count();
        if held.len() >= MOST || ours >= MOST_OF_ONE {
            let count = if ours >= MOST_OF_ONE { ours } else { held.len() };
            return Err(UploadError::Many { count });
        }
        self.room(&held, &purpose.token, 1)?;
        let mut id = UploadId::default();
        getrandom::fill(&mut id).map_err(|_| UploadError::Random)?;
        let stem = hex::show(&id);
        let ticket = Ticket { purpose: purpose.clone(), length };
        let written = File::create(self.part(&id)).and_then(|_| {
            let json = serde_json::to_vec(&ticket).unwrap_or_default();
            fs::write(self.spool.path().join(format!("{stem}.json")), json)
        });
        if let Err(error) = written {
            remove(self.spool.path(), &stem);
            return Err(error.into());
        }
        let now = Timestamp::now();
        let state = Mutex::new((0, now));
        let writer = tokio::sync::Mutex::new(());
        held.insert(id, Arc::new(Upload { purpose, length, state, writer }));
        self.measure(&held);
        Ok(Progress { id, offset: 0, length, expires: self.expires(now) })
    }

    /// Whether so many bytes more of that token can be taken.
    fn room(&self, held: &Held, token: &str, more: u64) -> Result<(), UploadError> {
        let UploadLimits { largest, quota, .. } = self.limits;
        if taken(held, None).saturating_add(more) > quota {
            return Err(UploadError::Quota { quota, whose: "" });
        }
        let one = (quota / 2).max(largest.min(quota));
        if taken(held, Some(token)).saturating_add(more) > one {
            return Err(UploadError::Quota { quota: one, whose: "of this token " });
        }
        Ok(())
    }

    /// Notes bytes that came before they are written, so that no two requests take the same room.
    fn take<'a>(&self, upload: &'a Upload, at: u64, more: u64) -> Result<Taken<'a>, UploadError> {
        let held = self.held();
        self.room(&held, &upload.purpose.token, more)?;
        *upload.state() = (at + more, Timestamp::now());
        self.measure(&held);
        Ok(Taken { upload, at, written: false })
    }

    fn find(&self, id: &UploadId, purpose: &Purpose) -> Result<Arc<Upload>, UploadError> {
        let held = self.held();
        let found = held.get(id).filter(|upload| upload.purpose == *purpose);
        found.cloned().ok_or(UploadError::NotFound)
    }

    /// How far one is.
    ///
    /// # Errors
    /// [`UploadError::NotFound`].
    pub fn progress(&self, id: &UploadId, purpose: &Purpose) -> Result<Progress, UploadError> {
        let upload = self.find(id, purpose)?;
        let (offset, touched) = *upload.state();
        Ok(Progress { id: *id, offset, length: upload.length, expires: self.expires(touched) })
    }

    /// Appends a piece that starts at `offset`; what came of it stays even if the rest does not.
    ///
    /// # Errors
    /// [`UploadError::NotFound`]; [`UploadError::Offset`] for another offset than the upload's, or
    /// while another request brings a piece; [`UploadError::Beyond`]; those of the disk and of the
    /// piece.
    pub async fn append<P: Pieces>(
        &self,
        id: &UploadId,
        purpose: &Purpose,
        offset: u64,
        mut piece: P,
    ) -> Result<u64, P::Error> {
        let upload = self.find(id, purpose)?;
        let there = upload.state().0;
        let Ok(_alone) = upload.writer.try_lock() else {
            let detail = "another request is bringing a piece of this upload".to_owned();
            return Err(UploadError::Offset { offset: there, detail }.into());
        };
        if offset != there {
            let detail = format!("the upload is at offset {there}, the piece starts at {offset}");
            return Err(UploadError::Offset { offset: there, detail }.into());
        }
        let left = upload.length - there;
        if piece.length().is_some_and(|length| length > left) {
            return Err(UploadError::Beyond { left }.into());
        }
        let mut options = tokio::fs::OpenOptions::new();
        let mut file = options.write(true).open(self.part(id)).await.map_err(UploadError::from)?;
        file.set_len(there).await.map_err(UploadError::from)?;
        file.seek(SeekFrom::Start(there)).await.map_err(UploadError::from)?;
        let mut at = there;
        while let Some(bytes) = piece.next().await? {
            let more = bytes.len() as u64;
            if more > upload.length - at {
                return Err(UploadError::Beyond { left }.into());
            }
            let mut taken = self.take(&upload, at, more)?;
            file.write_all(&bytes).await.map_err(UploadError::from)?;
            file.flush().await.map_err(UploadError::from)?;
            taken.written = true;
            at += more;
        }
        Ok(at)
    }

    /// All of a finished upload.
    ///
    /// # Errors
    /// [`UploadError::NotFound`]; [`UploadError::Offset`] if some of it is still to come; those of
    /// the disk.
    pub fn read(&self, id: &UploadId, purpose: &Purpose) -> Result<Vec<u8>, UploadError> {
        Ok(fs::read(self.finished(id, purpose)?)?)
    }

    /// The same as a file, of what may be larger than there is memory for.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn file(&self, id: &UploadId, purpose: &Purpose) -> Result<fs::File, UploadError> {
        Ok(fs::File::open(self.finished(id, purpose)?)?)
    }

    fn finished(&self, id: &UploadId, purpose: &Purpose) -> Result<PathBuf, UploadError> {
        let upload = self.find(id, purpose)?;
        let offset = upload.state().0;
        if offset != upload.length {
            let (name, length) = (hex::show(id), upload.length);
            let detail = format!("upload {name} has {offset} of {length} bytes");
            return Err(UploadError::Offset { offset, detail });
        }
        Ok(self.part(id))
    }

    /// Forgets one.
    ///
    /// # Errors
    /// [`UploadError::NotFound`].
    pub fn delete(&self, id: &UploadId, purpose: &Purpose) -> Result<(), UploadError> {
        self.find(id, purpose)?;
        let mut held = self.held();
        held.remove(id);
        remove(self.spool.path(), &hex::show(id));
        self.measure(&held);
        Ok(())
    }

    fn part(&self, id: &UploadId) -> PathBuf {
        self.spool.path().join(format!("{}.part", hex::show(id)))
    }
}

/// Room for bytes that are being written; given back unless they were.
struct Taken<'a> {
    upload: &'a Upload,
    at: u64,
    written: bool,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.written {
            *self.upload.state() = (self.at, Timestamp::now());
        }
    }
}

/// Bytes that have come, of all or of one token.
fn taken(held: &Held, token: Option<&str>) -> u64 {
    let counted =
        held.values().filter(|upload| token.is_none_or(|token| upload.purpose.token == token));
    counted.map(|upload| upload.state().0).sum()
}

/// An upload of an earlier run, if both of its files are sound.
fn recover(folder: &Path, stem: &str) -> Option<Upload> {
    let ticket = fs::read(folder.join(format!("{stem}.json"))).ok()?;
    let ticket: Ticket = serde_json::from_slice(&ticket).ok()?;
    let part = fs::metadata(folder.join(format!("{stem}.part"))).ok()?;
    let touched = Timestamp::try_from(part.modified().ok()?).ok()?;
    let (purpose, length) = (ticket.purpose, ticket.length);
    let state = Mutex::new((part.len(), touched));
    let writer = tokio::sync::Mutex::new(());
    (part.len() <= length).then_some(Upload { purpose, length, state, writer })
}

/// What cannot be removed now is removed when the server starts again.
fn remove(folder: &Path, stem: &str) {
    for kind in ["json", "part"] {
        let _ = fs::remove_file(folder.join(format!("{stem}.{kind}")));
    }
}
