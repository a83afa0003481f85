//! The sealed bytes of one collection on this machine: a folder of immutable files and a manifest, or memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ciphervec_arith::AlignedBytes;
use ciphervec_owner::SegmentId;
use ciphervec_owner::search::{QUERY_VERSION, ServerIndex};
use ciphervec_owner::store::{self, Store, StoreError};
use indexmap::IndexMap;

use crate::change::Listing;
use crate::change::{Change, ROWS, Segments, StoredSegment};
use crate::error::{Error, Result};
use crate::hex::Hex;
use crate::host::{Host, Progress};
use crate::store::Verified;
use crate::threads::heavy;

/// Faults of stored bytes that a message lists.
const SHOWN: usize = 20;

/// Where they lie.
pub enum Blobs {
    Folder(Store),
    Memory(Memory),
}

/// Blobs that end with the process. Sealed rows are in the index alone, once it has them.
#[derive(Default)]
pub struct Memory {
    version: u64,
    blobs: HashMap<SegmentId, IndexMap<&'static str, Arc<[u8]>>>,
    attachments: BTreeMap<&'static str, Vec<u8>>,
}

impl Memory {
    pub fn new(attachments: BTreeMap<&'static str, Vec<u8>>) -> Self {
        Memory { attachments, ..Self::default() }
    }

    fn take_in(&mut self, change: &Change) {
        self.version += 1;
        for gone in &change.remove {
            self.blobs.remove(gone);
        }
        self.blobs.extend(change.add.iter().map(|added| (added.id, added.blobs.clone())));
        let attachments = change.attachments.iter();
        self.attachments.extend(attachments.map(|(name, blob)| (*name, blob.clone())));
    }
}

impl Blobs {
    /// What a folder holds. Segments that are as they were `before` are the same objects again.
    pub fn listed(store: &Store, before: Option<&Listing>) -> Listing {
        let mut segments = Segments::with_capacity(store.segments().len());
        for entry in store.segments() {
            let blobs = entry.blobs().map(|(name, blob)| (name.to_owned(), blob.length));
            let id = SegmentId(entry.id);
            let (rows, deleted) = (entry.rows, entry.deleted.iter().collect());
            let segment = StoredSegment { id, rows, blobs: blobs.collect(), deleted };
            let known = before.and_then(|before| before.segments.get(&id));
            let known = known.filter(|known| ***known == segment).cloned();
            segments.insert(id, known.unwrap_or_else(|| Arc::new(segment)));
        }
        let attachments = store.attachments().map(|(name, blob)| (name.to_owned(), blob.length));
        Listing {
            version: store.version(),
            head: Hex(store.head()).to_string(),
            meta: store.meta().into(),
            segments,
            attachments: attachments.collect(),
            query_version: QUERY_VERSION.into(),
            evaluation: None,
            fetch_version: 0,
        }
    }

    /// Number and name of the state that a change makes.
    pub fn commit(&mut self, change: &Change) -> Result<(u64, String)> {
        match self {
            Self::Memory(memory) => {
                memory.take_in(change);
                Ok((memory.version, Hex([0; 32]).to_string()))
            }
            Self::Folder(folder) => {
                let done =
                    heavy(|| folder.commit_keyed(&stored(change), None)).map_err(error_of)?;
                Ok((done.version, Hex(done.head).to_string()))
            }
        }
    }

    /// One blob; `index` has the rows of memory.
    pub fn read(
        &self,
        index: Option<&ServerIndex>,
        segment: SegmentId,
        blob: &str,
    ) -> Result<Arc<[u8]>> {
        match self {
            Self::Folder(store) => {
                let bytes = heavy(|| store.read(&segment.0, blob)).map_err(error_of)?;
                Ok(Arc::from(&*bytes))
            }
            Self::Memory(memory) => {
                if let Some(held) = memory.blobs.get(&segment).and_then(|blobs| blobs.get(blob)) {
                    return Ok(Arc::clone(held));
                }
                let mut indexed = index
                    .into_iter()
                    .flat_map(|index| index.segments().map(move |one| (index.spec(), one)));
                match indexed.find(|(_, one)| blob == ROWS && one.head().id == segment) {
                    Some((spec, rows)) => Ok(heavy(|| rows.to_bytes(spec))?.into()),
                    None => Error::corrupt(format!("segment {segment} has no {blob}.")),
                }
            }
        }
    }

    /// The sealed rows of a segment on their way into an index.
    pub fn rows(&self, segment: SegmentId) -> Result<AlignedBytes> {
        match self {
            Self::Folder(store) => heavy(|| store.read(&segment.0, ROWS)).map_err(error_of),
            Self::Memory(_) => Ok(AlignedBytes::from_slice(&self.read(None, segment, ROWS)?)),
        }
    }

    /// An index has the rows of a segment from now on.
    pub fn leave(&mut self, segment: SegmentId) {
        if let Self::Memory(memory) = self
            && let Some(blobs) = memory.blobs.get_mut(&segment)
        {
            blobs.shift_remove(ROWS);
        }
    }

    /// An index gives back the rows that memory has left to it.
    pub fn take_back(&mut self, index: &ServerIndex) -> Result<()> {
        let Self::Memory(memory) = self else { return Ok(()) };
        for segment in index.segments() {
            let rows = heavy(|| segment.to_bytes(index.spec()))?;
            memory.blobs.entry(segment.head().id).or_default().insert(ROWS, rows.into());
        }
        Ok(())
    }

    pub fn attachment(&self, name: &str) -> Result<Vec<u8>> {
        match self {
            Self::Folder(store) => heavy(|| store.attachment(name)).map_err(error_of),
            Self::Memory(memory) => match memory.attachments.get(name) {
                Some(data) => Ok(data.clone()),
                None => Error::corrupt(format!("there is no attachment {name}.")),
            },
        }
    }

    /// Moves on to what another process has committed, where this one only reads; whether there was something.
    pub fn refresh(&mut self) -> Result<bool> {
        match self {
            Self::Folder(store) if !store.is_writable() => {
                heavy(|| store.refresh()).map_err(error_of)
            }
            Self::Folder(_) | Self::Memory(_) => Ok(false),
        }
    }

    pub fn verify(&self, host: &dyn Host) -> Result<Verified> {
        let store = match self {
            Self::Folder(store) => store,
            Self::Memory(memory) => {
                let blobs = memory.blobs.values().flat_map(|blobs| blobs.values());
                let bytes = blobs.map(|blob| blob.len() as u64).sum();
                return Ok(Verified { files: 0, bytes, strays: 0 });
            }
        };
        let mut told = |done, total| {
            host.progress(Progress { phase: "read", done, total: Some(total), ms: None })
        };
        let report = store.verify(&mut told).map_err(error_of)?;
        if report.problems.is_empty() {
            return Ok(Verified {
                files: report.files,
                bytes: report.bytes,
                strays: report.strays,
            });
        }
        let mut lines: Vec<_> =
            report.problems.iter().take(SHOWN).map(|one| one.message.clone()).collect();
        if report.problems.len() > SHOWN {
            lines.push(format!("and {} more", report.problems.len() - SHOWN));
        }
        Error::corrupt(lines.join("\n"))
    }

    pub fn purge(&mut self) -> Result<()> {
        match self {
            Self::Folder(store) => store.purge().map_err(error_of),
            Self::Memory(_) => Ok(()),
        }
    }
}

fn stored(change: &Change) -> store::Change {
    let named = |blobs: &[(&str, &[u8])]| {
        blobs.iter().map(|(name, blob)| ((*name).to_owned(), blob.to_vec())).collect()
    };
    let add = change.add.iter().map(|added| {
        let blobs: Vec<_> = added.blobs.iter().map(|(name, blob)| (*name, &**blob)).collect();
        store::NewSegment { id: added.id.0, rows: added.rows, blobs: named(&blobs) }
    });
    let gone = change.add.iter().filter(|added| !added.deleted.is_empty());
    let gone = gone.map(|added| (added.id.0, added.deleted.clone()));
    let deleted = change.delete_rows.iter().map(|(id, rows)| (id.0, rows.clone()));
    let attachments: Vec<_> =
        change.attachments.iter().map(|(name, blob)| (*name, blob.as_slice())).collect();
    store::Change {
        add: add.collect(),
        remove: change.remove.iter().map(|id| id.0).collect(),
        delete_rows: deleted.chain(gone).collect(),
        set_meta: change.meta.clone(),
        attachments: named(&attachments),
        drop_attachments: Vec::new(),
    }
}

/// What a folder says, as an error of this crate.
pub fn error_of(error: StoreError) -> Error {
    let says = error.to_string();
    match error {
        StoreError::Locked { .. } | StoreError::Forked { .. } => Error::Locked(says),
        StoreError::Unsupported { .. } => Error::Version(says),
        StoreError::Corrupt { .. }
        | StoreError::Missing { .. }
        | StoreError::UnknownBlob { .. } => Error::Corrupt(says),
        StoreError::InvalidChange { .. }
        | StoreError::SegmentExists { .. }
        | StoreError::UnknownSegment { .. } => Error::Input(says),
        _ => Error::Storage(says),
    }
}
