//! What a store lists of a collection, and what one commit does to it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ciphervec_owner::SegmentId;
use indexmap::IndexMap;
use serde::Deserialize;

use crate::gathered::gathered;

/// Blobs of a segment: sealed vectors, ids and norms, metadata and documents, filter tags, vectors as they were put in, the words of its
/// documents; and, in one that a writer sealed, its key, wrapped to the owner.
pub const ROWS: &str = "rows";
pub const SIDECAR: &str = "sidecar";
pub const RECORDS: &str = "records";
pub const TAGS: &str = "tags";
pub const ORIGINALS: &str = "originals";
pub const TERMS: &str = "terms";
pub const WRAP: &str = "wrap";
/// All of them.
pub const BLOBS: [&str; 7] = [ROWS, SIDECAR, RECORDS, TAGS, ORIGINALS, TERMS, WRAP];

/// What a collection keeps beside its segments: the server's keys, the owner's key pair, what the owner says of all that with each commit,
/// which segments of writers count no more, and which segments are clusters.
pub const EVALUATION: &str = "evaluation";
pub const KEY_PAIR: &str = "key-pair";
pub const STATE: &str = "state";
pub const CONSUMED: &str = "consumed";
pub const ROUTING: &str = "routing";

/// The blobs whose bytes a state covers; records are sealed one by one to their place and id.
pub const COVERED: [&str; 3] = [SIDECAR, TAGS, WRAP];

/// One committed segment, as a store lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSegment {
    pub id: SegmentId,
    pub rows: u32,
    /// Bytes of each.
    pub blobs: IndexMap<String, u64>,
    /// Rows that are gone, ascending.
    pub deleted: Vec<u32>,
}

impl StoredSegment {
    pub fn has(&self, blob: &str) -> bool {
        self.blobs.contains_key(blob)
    }

    /// Rows that are left.
    pub fn live(&self) -> usize {
        self.rows as usize - self.deleted.len()
    }

    /// Whether to read a blob. Who may only query is shown none at all: reading one then says so, unless it was read before.
    pub fn may_have(&self, blob: &str) -> bool {
        self.has(blob) || self.blobs.is_empty()
    }
}

/// One segment, as [`crate::Collection::info`] lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its id, in hexadecimal.
    pub id: String,
    /// Rows, deleted ones included.
    pub rows: u32,
    /// Rows that are gone.
    pub deleted: usize,
    /// Bytes by blob.
    pub bytes: BTreeMap<String, u64>,
    /// Who sealed it, where that was a writer.
    pub writer: Option<String>,
}

impl SegmentInfo {
    /// As everybody sees it.
    pub(crate) fn of(segment: &StoredSegment) -> Self {
        SegmentInfo {
            id: segment.id.to_string(),
            rows: segment.rows,
            deleted: segment.deleted.len(),
            bytes: gathered(segment.blobs.iter().map(|(name, bytes)| (name.clone(), *bytes))),
            writer: None,
        }
    }
}

/// Segments in their order, oldest first.
pub type Segments = IndexMap<SegmentId, Arc<StoredSegment>>;

/// What a listing says of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CollectionRow {
    /// Its name.
    pub name: String,
    /// Rows that are there.
    #[serde(default)]
    pub rows: u64,
    /// What is stored.
    #[serde(default)]
    pub bytes: u64,
}

/// One committed state of a collection.
#[derive(Clone, Debug)]
pub struct Listing {
    pub version: u64,
    pub head: String,
    pub meta: Arc<[u8]>,
    pub segments: Segments,
    /// Bytes of each.
    pub attachments: BTreeMap<String, u64>,
    /// The newest version of query frames that the server answers.
    pub query_version: u64,
    /// BLAKE3 of the evaluation keys that it says it answers with.
    pub evaluation: Option<[u8; 32]>,
    /// The newest version of private fetches that it answers; 0 for none.
    pub fetch_version: u64,
}

impl Listing {
    /// What is told of it among others.
    #[cfg(feature = "folder")]
    pub fn row(&self, name: &str) -> CollectionRow {
        let rows = self.segments.values().map(|one| one.live() as u64).sum();
        let blobs = self.segments.values().flat_map(|one| one.blobs.values());
        let bytes = blobs.chain(self.attachments.values()).sum();
        CollectionRow { name: name.to_owned(), rows, bytes }
    }

    /// The state that a commit on top of this one leaves.
    pub fn after(&self, change: &Change, version: u64, head: String) -> Self {
        let mut attachments = self.attachments.clone();
        attachments.extend(
            change.attachments.iter().map(|(name, blob)| ((*name).to_owned(), blob.len() as u64)),
        );
        let keys = change.attachments.get(EVALUATION).map(|keys| *blake3::hash(keys).as_bytes());
        Listing {
            version,
            head,
            meta: change
                .meta
                .as_ref()
                .map_or_else(|| Arc::clone(&self.meta), |meta| meta.as_slice().into()),
            segments: change.after(&self.segments),
            attachments,
            query_version: self.query_version,
            evaluation: self.evaluation.map(|known| keys.unwrap_or(known)),
            fetch_version: self.fetch_version,
        }
    }
}

/// One segment to commit.
#[derive(Clone, Debug)]
pub struct NewSegment {
    pub id: SegmentId,
    pub rows: u32,
    pub blobs: IndexMap<&'static str, Arc<[u8]>>,
    /// Rows that are deleted in the very commit that adds it, ascending.
    pub deleted: Vec<u32>,
}

impl NewSegment {
    /// As it is listed once it is committed.
    pub fn stored(&self) -> StoredSegment {
        let blobs = self.blobs.iter().map(|(name, blob)| ((*name).to_owned(), blob.len() as u64));
        let deleted = self.deleted.clone();
        StoredSegment { id: self.id, rows: self.rows, blobs: blobs.collect(), deleted }
    }
}

/// What one commit does. All of it becomes durable, or none.
#[derive(Default, Debug)]
pub struct Change {
    pub add: Vec<NewSegment>,
    pub remove: Vec<SegmentId>,
    pub delete_rows: BTreeMap<SegmentId, Vec<u32>>,
    /// Rows of clusters that go without the store being told: the sealed routing table says so.
    pub hide_rows: BTreeMap<SegmentId, Vec<u32>>,
    pub meta: Option<Vec<u8>>,
    pub attachments: BTreeMap<&'static str, Vec<u8>>,
    /// Segments that were staged to become clusters, and count from then on.
    pub adopted: Vec<SegmentId>,
}

impl Change {
    /// Whether it does nothing to rows.
    pub fn is_empty(&self) -> bool {
        self.add.is_empty()
            && self.remove.is_empty()
            && self.delete_rows.is_empty()
            && self.hide_rows.is_empty()
    }

    /// The segments that it leaves of these.
    pub fn after(&self, before: &Segments) -> Segments {
        let gone: HashSet<_> = self.remove.iter().collect();
        let mut left: Segments = before.clone();
        left.retain(|id, _| !gone.contains(id));
        for (id, rows) in &self.delete_rows {
            if let Some(old) = left.get_mut(id) {
                *old = Arc::new(StoredSegment {
                    deleted: union(&old.deleted, rows),
                    ..(**old).clone()
                });
            }
        }
        left.extend(self.add.iter().map(|added| (added.id, Arc::new(added.stored()))));
        left
    }
}

/// Both, ascending, each once.
pub fn union(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// What leads from one listing to another: the later one is the earlier without `gone`, with `changed` in the places of the segments of
/// their ids, and with `added` at its end. A segment that moved is among those gone and those added.
#[derive(Debug, Default)]
pub struct Difference {
    pub gone: Vec<Arc<StoredSegment>>,
    pub changed: Vec<Arc<StoredSegment>>,
    pub added: Vec<Arc<StoredSegment>>,
}

impl Difference {
    /// From one listing, in which no id is twice, to another, which may be anything.
    pub fn between(before: &[Arc<StoredSegment>], now: &[Arc<StoredSegment>]) -> Self {
        let mut found = Self::default();
        let places: HashMap<_, _> =
            before.iter().enumerate().map(|(place, one)| (one.id, place)).collect();
        let (mut old, mut next) = (0, 0);
        while let (true, Some(wanted)) = (old < before.len(), now.get(next)) {
            let at = places.get(&wanted.id).copied().unwrap_or(before.len());
            if at < old {
                break; // it moved
            }
            found.gone.extend_from_slice(&before[old..at]);
            old = at;
            let Some(known) = before.get(old) else { break };
            if !Arc::ptr_eq(known, wanted) && known != wanted {
                found.changed.push(Arc::clone(wanted));
            }
            (old, next) = (old + 1, next + 1);
        }
        found.gone.extend_from_slice(&before[old..]);
        found.added.extend_from_slice(&now[next..]);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn listed(names: &[(u8, u8)]) -> Vec<Arc<StoredSegment>> {
        let one = |&(id, deleted): &(u8, u8)| {
            let deleted = (0..u32::from(deleted)).collect();
            Arc::new(StoredSegment {
                id: SegmentId([id; 16]),
                rows: 9,
                blobs: IndexMap::new(),
                deleted,
            })
        };
        let mut known = HashSet::new();
        names.iter().filter(|(id, _)| known.insert(*id)).map(one).collect()
    }

    proptest! {
        #[test]
        fn a_difference_leads_from_one_listing_to_the_other(
            before in proptest::collection::vec((0u8..12, 0u8..3), 0..10),
            now in proptest::collection::vec((0u8..12, 0u8..3), 0..10),
        ) {
            let (before, now) = (listed(&before), listed(&now));
            let Difference { gone, changed, added } = Difference::between(&before, &now);
            let gone: HashSet<_> = gone.iter().map(|one| one.id).collect();
            let changed: HashMap<_, _> = changed.iter().map(|one| (one.id, one)).collect();
            let kept = before.iter().filter(|one| !gone.contains(&one.id));
            let made: Vec<_> = kept.map(|one| *changed.get(&one.id).unwrap_or(&one)).chain(&added).cloned().collect();
            prop_assert_eq!(made, now);
        }
    }
}
