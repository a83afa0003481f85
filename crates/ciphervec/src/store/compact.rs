//! Compaction: moves the blobs of a collection into few files, with the same segments. For the one
//! writer.
//!
//! Sealed bytes are moved as they are: no key is needed, no segment changes its id, its rows or its
//! answers. Blobs that have small files of their own, lie in small packs, or in packs most of which
//! nobody names any more are written back to back into new packs. Segments all of whose rows were
//! deleted go.

use super::blob;
use super::blob_ref::{BlobPlace, BlobRef, pack_file};
use super::error::StoreError;
use super::folder::Store;
use super::manifest::{Manifest, SegmentEntry};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Files below this are small.
const SMALL: u64 = 4 << 20;
/// Bytes after which a pack is full.
const FULL: u64 = 64 << 20;

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Segments that went because all of their rows were deleted.
    pub segments_dropped: u64,
    /// Files that the state named before.
    pub files_before: u64,
    /// Files that it names now.
    pub files_after: u64,
    /// Bytes that were written anew.
    pub bytes_moved: u64,
}

impl Store {
    /// Moves small blobs together and drops segments without live rows. With `thorough`, no pack
    /// keeps a byte that the state does not name. The files that are not needed any more go with
    /// the next commit.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a blob to be moved is damaged: nothing was changed; as
    /// [`Store::commit`].
    pub fn compact(&mut self, thorough: bool) -> Result<Compacted, StoreError> {
        self.repack(true, thorough)
    }

    /// With `gather`, small blobs go together; without, only packs that hold dead bytes are written
    /// anew.
    fn repack(&mut self, gather: bool, thorough: bool) -> Result<Compacted, StoreError> {
        self.require_writable()?;
        let empty = |segment: &SegmentEntry| segment.deleted.len() == segment.rows;
        let segments_dropped = self.current.segments.iter().filter(|one| empty(one)).count() as u64;
        let mut live = Manifest::clone(&self.current);
        live.segments.retain(|segment| !empty(segment));
        let moving = self.to_move(&live, gather, thorough)?;
        let files_before = files(&self.current);
        if moving.is_empty() && segments_dropped == 0 {
            return Ok(Compacted {
                files_before,
                files_after: files_before,
                ..Compacted::default()
            });
        }
        let bytes_moved = moving.iter().map(|blob| blob.length).sum();
        self.publish(None, |store, next, written| {
            let moved = store.rewrite(&moving, written)?;
            let relocate = |blob: &mut BlobRef| {
                if let Some(place) = moved.get(blob) {
                    blob.place = *place;
                }
            };
            next.segments.retain(|segment| !empty(segment));
            for segment in &mut next.segments {
                let mut blobs = segment.blobs.to_vec();
                blobs.iter_mut().for_each(|(_, blob)| relocate(blob));
                segment.blobs = blobs.into();
            }
            next.attachments.iter_mut().for_each(|(_, blob)| relocate(blob));
            Ok(())
        })?;
        let files_after = files(&self.current);
        Ok(Compacted { segments_dropped, files_before, files_after, bytes_moved })
    }

    /// Leaves nothing stored but the present state and the snapshots: no byte of what was removed,
    /// no state before. In a shared place what is younger than an hour stays, because another
    /// server may be about to name it.
    ///
    /// # Errors
    /// As [`Store::compact`] and [`Store::collect_garbage`].
    pub fn purge(&mut self) -> Result<(), StoreError> {
        self.repack(false, true)?;
        // The state before the latest is kept as well; a commit that changes nothing makes the two
        // the same.
        self.publish(None, |_, _, _| Ok(()))?;
        self.collect_garbage()?;
        Ok(())
    }

    /// Blobs that lie better in a new pack, each once, in the order of the segments.
    fn to_move(
        &self,
        live: &Manifest,
        gather: bool,
        thorough: bool,
    ) -> Result<Vec<BlobRef>, StoreError> {
        let mut seen = HashSet::new();
        let blobs: Vec<BlobRef> = live
            .segments
            .iter()
            .flat_map(|segment| segment.blobs.iter())
            .chain(&live.attachments)
            .map(|(_, blob)| *blob)
            .filter(|blob| seen.insert(*blob))
            .collect();
        let mut packs: BTreeMap<[u8; 16], u64> = BTreeMap::new();
        for blob in &blobs {
            if let BlobPlace::Pack { pack, .. } = blob.place {
                *packs.entry(pack).or_default() += blob.file_length().next_multiple_of(64);
            }
        }
        let mut wasteful = HashSet::new();
        let mut small = HashSet::new();
        for (pack, named) in packs {
            // One that is not there is found when a blob in it is read.
            let length = self.medium.length(&pack_file(&pack))?.unwrap_or(named);
            let dead = length.saturating_sub(named);
            if dead > if thorough { 0 } else { named } {
                wasteful.insert(pack);
            } else if length < SMALL {
                small.insert(pack);
            }
        }
        let alone = |blob: &&BlobRef| blob.place == BlobPlace::File && blob.file_length() < SMALL;
        // One small file is no better off in a pack of its own.
        let few = !gather || small.len() + blobs.iter().filter(alone).count() < 2;
        let moves = |blob: &BlobRef| match blob.place {
            BlobPlace::File => !few && alone(&blob),
            BlobPlace::Pack { pack, .. } => {
                wasteful.contains(&pack) || !few && small.contains(&pack)
            }
        };
        Ok(blobs.into_iter().filter(moves).collect())
    }

    /// Writes blobs into new packs, each of at most [`FULL`] bytes or one blob; where each lies
    /// now.
    fn rewrite(
        &self,
        moving: &[BlobRef],
        written: &mut Vec<BlobRef>,
    ) -> Result<HashMap<BlobRef, BlobPlace>, StoreError> {
        let mut places = HashMap::new();
        let mut rest = moving;
        while !rest.is_empty() {
            let (group, later) = rest.split_at(fitting(rest.iter().map(BlobRef::file_length)));
            let payloads = group
                .iter()
                .map(|blob| blob::read(&*self.medium, blob))
                .collect::<Result<Vec<_>, _>>()?;
            let payloads: Vec<&[u8]> = payloads.iter().map(|payload| payload.as_slice()).collect();
            let packed = self.write_packed(&payloads)?;
            places.extend(group.iter().copied().zip(packed.iter().map(|blob| blob.place)));
            written.extend(packed);
            rest = later;
        }
        Ok(places)
    }
}

/// How many blobs of these lengths, at least one, fill a pack.
pub(super) fn fitting(lengths: impl Iterator<Item = u64>) -> usize {
    let mut total = 0;
    let fits = lengths.take_while(|length| {
        total += length;
        total <= FULL
    });
    fits.count().max(1)
}

fn files(manifest: &Manifest) -> u64 {
    manifest.references().map(BlobRef::lies_in).collect::<HashSet<_>>().len() as u64
}
