//! Commits a change durably, all of it or nothing. For the one writer.

use super::blob;
use super::blob_ref::{BlobFile, BlobRef};
use super::compact::fitting;
use super::error::StoreError;
use super::folder::{self, ORPHAN_AFTER, Store};
use super::keyed::{self, CommitKey, Committed, Keyed};
use super::manifest::{self, Manifest, SegmentEntry, valid_new_name};
use super::rows::RowSet;
use super::{Change, NewSegment, SegmentId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

type Named = [(String, Vec<u8>)];

/// In a folder at least so many blobs of fewer bytes are written into packs.
const MANY: usize = 32;
const SMALL: usize = 256 << 10;

impl Store {
    /// Applies all of `change` and returns the new version, durably, or nothing of it. An empty
    /// change is no commit.
    ///
    /// # Errors
    /// [`StoreError::InvalidChange`], [`StoreError::UnknownSegment`], [`StoreError::UnknownBlob`]
    /// before anything is written; [`StoreError::Full`] and [`StoreError::Io`] with the old state
    /// intact and the writer usable; [`StoreError::Sync`] when an fsync failed, after which every
    /// commit is [`StoreError::Poisoned`] and only reopening tells which state is on disk;
    /// [`StoreError::Conflict`] when another writer got past the lock; [`StoreError::ReadOnly`].
    pub fn commit(&mut self, change: Change) -> Result<u64, StoreError> {
        self.commit_keyed(&change, None).map(|committed| committed.version)
    }

    /// As [`Store::commit`]. With a key, the change is made once however often it is sent: the
    /// latest [`KEYS_KEPT`](super::KEYS_KEPT) keys are part of the state.
    ///
    /// # Errors
    /// As [`Store::commit`], and [`StoreError::KeyReused`]. On a shared medium
    /// [`StoreError::Conflict`] leaves the writer usable: [`Store::refresh`], look again, and
    /// commit.
    pub fn commit_keyed(
        &mut self,
        change: &Change,
        key: Option<CommitKey>,
    ) -> Result<Committed, StoreError> {
        self.require_writable()?;
        if let Some(key) = key
            && let Some(done) = self.committed(&key)?
        {
            return Ok(done);
        }
        if *change == Change::default() {
            let (version, head) = (self.version(), self.head);
            return Ok(Committed { version, head, replayed: false });
        }
        self.check(change)?;
        self.publish(key, |store, next, written| store.write_blobs(change, next, written))
    }

    /// What was committed under this key.
    ///
    /// # Errors
    /// [`StoreError::KeyReused`] for a key that another change was committed under.
    pub fn committed(&self, key: &CommitKey) -> Result<Option<Committed>, StoreError> {
        let Some(found) = self.current.keyed(key) else { return Ok(None) };
        if found.key.digest != key.digest {
            return Err(StoreError::KeyReused { path: self.path.clone() });
        }
        let head = if found.version == self.version() { self.head } else { found.head };
        Ok(Some(Committed { version: found.version, head, replayed: true }))
    }

    /// Makes the next state durable. `build` writes what it needs, changes the copy of the present
    /// state that it is given, and notes what it wrote.
    pub(super) fn publish(
        &mut self,
        key: Option<CommitKey>,
        build: impl FnOnce(&Self, &mut Manifest, &mut Vec<BlobRef>) -> Result<(), StoreError>,
    ) -> Result<Committed, StoreError> {
        self.publish_since(Instant::now(), key, build)
    }

    /// As [`Store::publish`], for a commit whose first byte was written at `began`.
    pub(super) fn publish_since(
        &mut self,
        began: Instant,
        key: Option<CommitKey>,
        build: impl FnOnce(&Self, &mut Manifest, &mut Vec<BlobRef>) -> Result<(), StoreError>,
    ) -> Result<Committed, StoreError> {
        let mut written = Vec::new();
        let mut next = Manifest::clone(&self.current);
        next.version += 1;
        next.previous = self.head;
        next.dropped = false;
        keyed::advance(&mut next.keyed, self.version(), self.head);
        if let Some(key) = key {
            next.keyed.push(Keyed { key, version: next.version, head: [0; 32] });
        }
        let built = build(self, &mut next, &mut written)
            .and_then(|()| if written.is_empty() { Ok(()) } else { self.medium.settle() });
        if let Err(error) = built {
            return Err(self.give_up(error, &written));
        }
        let unchanged = self.require_newest(began);
        let head = match unchanged.and_then(|()| self.write_manifest(&next)) {
            Ok(head) => head,
            Err(error) => return Err(self.give_up(error, &written)),
        };
        let next = Arc::new(next);
        let retired =
            std::mem::replace(&mut self.previous, std::mem::replace(&mut self.current, next));
        self.head = head;
        self.retire(&retired);
        Ok(Committed { version: self.version(), head, replayed: false })
    }

    /// The lock keeps other writers out; if it failed, or its file was removed, they are not
    /// overwritten. Where there is no lock, what was written must still be young enough that nobody
    /// collects it.
    fn require_newest(&self, began: Instant) -> Result<(), StoreError> {
        if self.medium.is_shared() {
            if began.elapsed() < ORPHAN_AFTER / 2 {
                return Ok(());
            }
            let source = std::io::Error::from(std::io::ErrorKind::TimedOut);
            return Err(StoreError::io("commit within half an hour to", &self.path, source));
        }
        match folder::manifest_versions(&*self.medium)?.last() {
            Some(&actual) if actual != self.current.version => Err(self.conflict(actual)),
            _ => Ok(()),
        }
    }

    fn conflict(&self, actual: u64) -> StoreError {
        let expected = self.current.version;
        StoreError::Conflict { path: self.path.clone(), expected, actual }
    }

    fn write_manifest(&self, next: &Manifest) -> Result<[u8; 32], StoreError> {
        let bytes = next.to_bytes()?;
        let name = folder::manifest_name(next.version);
        let head = manifest::hash(&bytes);
        let made = self.medium.create(&name, &bytes)?;
        // A retry below us may have met what its first attempt wrote.
        if !made && self.medium.get(&name)?.as_deref() != Some(&bytes[..]) {
            return Err(self.conflict(next.version));
        }
        if self.medium.is_shared() {
            // A writer that slept while others made many commits would find its place free again:
            // old manifests go.
            let versions = folder::manifest_versions(&*self.medium)?;
            let newest = versions.last().copied().unwrap_or(next.version);
            if newest > next.version && !versions.contains(&(next.version + 1)) {
                self.medium.remove(&name)?;
                return Err(self.conflict(newest));
            }
        }
        Ok(head)
    }

    pub(super) fn check(&self, change: &Change) -> Result<(), StoreError> {
        let unknown = |id| StoreError::unknown_segment(&self.path, id);
        let mut present: HashMap<_, _> =
            self.segments().iter().map(|segment| (segment.id, segment.rows)).collect();
        for id in &change.remove {
            if present.remove(id).is_none() {
                return Err(unknown(id));
            }
        }
        for segment in &change.add {
            check_new(segment)?;
            if present.insert(segment.id, segment.rows).is_some() {
                let id = crate::decode::hex(&segment.id);
                return Err(StoreError::SegmentExists { path: self.path.clone(), id });
            }
        }
        for (id, rows) in &change.delete_rows {
            let bound = *present.get(id).ok_or_else(|| unknown(id))?;
            if let Some(row) = rows.iter().find(|row| **row >= bound) {
                return Err(StoreError::invalid("deleted row", format!("below {bound}"), row));
            }
        }
        check_names(&change.attachments)?;
        for name in &change.drop_attachments {
            if super::manifest::find(&self.current.attachments, name).is_none() {
                return Err(StoreError::UnknownBlob {
                    path: self.path.clone(),
                    name: name.clone(),
                });
            }
        }
        Ok(())
    }

    /// Writes the blobs and brings `next` to the state that names them.
    pub(super) fn write_blobs(
        &self,
        change: &Change,
        next: &mut Manifest,
        written: &mut Vec<BlobRef>,
    ) -> Result<(), StoreError> {
        let mut blobs = self.write_payloads(change, written)?.into_iter();
        let mut name = |named: &Named| {
            let names = named.iter().map(|(name, _)| name.clone().into_boxed_str());
            let mut stored: Vec<_> = names.zip(blobs.by_ref()).collect();
            stored.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            stored
        };
        let removed: HashSet<_> = change.remove.iter().collect();
        next.segments.retain(|segment| !removed.contains(&segment.id));
        for NewSegment { id, rows, blobs } in &change.add {
            next.segments.push(SegmentEntry {
                id: *id,
                rows: *rows,
                added: next.version,
                deleted: RowSet::new(*rows),
                blobs: name(blobs).into(),
            });
        }
        let mut deleted: HashMap<&SegmentId, Vec<u32>> = HashMap::new();
        for (id, rows) in &change.delete_rows {
            deleted.entry(id).or_default().extend(rows);
        }
        if !deleted.is_empty() {
            for segment in &mut next.segments {
                for row in deleted.get(&segment.id).into_iter().flatten() {
                    segment.deleted.insert(*row);
                }
            }
        }
        let attached = name(&change.attachments);
        let gone = |name: &str| {
            change.drop_attachments.iter().any(|dropped| dropped == name)
                || attached.iter().any(|(replaced, _)| **replaced == *name)
        };
        next.attachments.retain(|(name, _)| !gone(name));
        next.attachments.extend(attached);
        next.attachments.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        if let Some(meta) = &change.set_meta {
            next.meta.clone_from(meta);
        }
        Ok(())
    }

    /// Writes the payloads of a change in the order in which it names them.
    pub(super) fn write_payloads(
        &self,
        change: &Change,
        written: &mut Vec<BlobRef>,
    ) -> Result<Vec<BlobRef>, StoreError> {
        let named = change.add.iter().flat_map(|segment| &segment.blobs);
        let payloads: Vec<&[u8]> =
            named.chain(&change.attachments).map(|(_, payload)| payload.as_slice()).collect();
        self.write_all(&payloads, written)
    }

    /// Writes blobs, and returns where each lies: all in one pack on a shared medium, under a name
    /// that nobody else draws. Elsewhere each has a file, which goes as soon as nobody needs it; but
    /// many small ones go into packs, since each file waits for the disk.
    pub(super) fn write_all(
        &self,
        payloads: &[&[u8]],
        written: &mut Vec<BlobRef>,
    ) -> Result<Vec<BlobRef>, StoreError> {
        if self.medium.is_shared() {
            if !payloads.is_empty() {
                written.extend(self.write_packed(payloads)?);
            }
            return Ok(written.clone());
        }
        let small = |payload: &&[u8]| payload.len() < SMALL;
        let mut packed = Vec::new();
        if payloads.iter().filter(|payload| small(payload)).count() >= MANY {
            let rest: Vec<&[u8]> = payloads.iter().copied().filter(small).collect();
            let mut rest = rest.as_slice();
            while !rest.is_empty() {
                let lengths = rest.iter().map(|payload| payload.len() as u64);
                let (group, later) = rest.split_at(fitting(lengths));
                let pack = self.write_packed(group)?;
                written.extend(&pack);
                packed.extend(pack);
                rest = later;
            }
        }
        let packs = !packed.is_empty();
        let mut packed = packed.into_iter();
        let mut stored = Vec::with_capacity(payloads.len());
        for payload in payloads {
            let place = if packs && small(payload) { packed.next() } else { None };
            stored.push(match place {
                Some(blob) => blob,
                None => {
                    let blob = blob::write(&*self.medium, payload)?;
                    written.push(blob);
                    blob
                }
            });
        }
        Ok(stored)
    }

    /// Writes one blob where this medium wants it.
    pub(super) fn write_one(&self, payload: &[u8]) -> Result<BlobRef, StoreError> {
        if !self.medium.is_shared() {
            return blob::write(&*self.medium, payload);
        }
        let packed = self.write_packed(&[payload])?;
        packed.first().copied().ok_or_else(|| StoreError::invalid("blobs of a pack", "1", 0))
    }

    /// Writes blobs into one pack.
    pub(super) fn write_packed(&self, payloads: &[&[u8]]) -> Result<Vec<BlobRef>, StoreError> {
        let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 pack");
        payloads.iter().for_each(|payload| {
            hasher.update(&(payload.len() as u64).to_le_bytes()).update(payload);
        });
        let mut content = [0; 16];
        hasher.finalize_xof().fill(&mut content);
        blob::write_pack(&*self.medium, self.medium.pack_name(content)?, payloads)
    }

    /// After a failure: frees the room that the attempt took, unless nobody knows what is on disk.
    pub(super) fn give_up(&mut self, error: StoreError, written: &[BlobRef]) -> StoreError {
        let name = folder::manifest_name(self.current.version + 1);
        let shared = self.medium.is_shared();
        let lost = shared && matches!(error, StoreError::Conflict { .. });
        let unknown = matches!(error, StoreError::Sync { .. } | StoreError::Conflict { .. });
        let there = || !matches!(self.medium.length(&name), Ok(None));
        if !lost && (unknown || there()) {
            self.poisoned = Some(error.to_string());
            return error;
        }
        if let Some(kept) = self.kept() {
            for file in files(written).filter(|file| !kept.contains(file)) {
                // What cannot be removed now is collected by the next open.
                let _ = self.medium.remove(&file.name());
            }
        }
        error
    }

    /// Removes the third newest state: its manifest, then the files that it alone named. On a
    /// shared medium another writer may be about to name them again: there they are left until they
    /// are old.
    fn retire(&mut self, retired: &Manifest) {
        // At first there is no state before the previous one.
        if self.medium.is_shared() || retired.version == self.previous.version {
            return;
        }
        // The commit stands whatever happens here; what stays is collected by the next open.
        let _ = self.medium.remove(&folder::manifest_name(retired.version));
        let Some(kept) = self.kept() else { return };
        let mut gone: Vec<BlobRef> = retired.references().copied().collect();
        for (_, snapshot) in retired.snapshots() {
            let frozen = self.frozen.get(&snapshot.root);
            gone.extend(frozen.iter().flat_map(|frozen| frozen.references()));
        }
        for file in files(&gone).filter(|file| !kept.contains(file)) {
            let _ = self.medium.remove(&file.name());
        }
    }
}

/// The files that blobs lie in, each once, in order.
fn files(blobs: &[BlobRef]) -> impl Iterator<Item = BlobFile> {
    let mut seen = HashSet::new();
    blobs.iter().map(BlobRef::lies_in).filter(move |file| seen.insert(*file))
}

fn check_new(segment: &NewSegment) -> Result<(), StoreError> {
    if segment.rows == 0 {
        return Err(StoreError::invalid("rows of a new segment", "at least 1", 0));
    }
    if segment.blobs.is_empty() {
        return Err(StoreError::invalid("blobs of a new segment", "at least 1", 0));
    }
    check_names(&segment.blobs)
}

fn check_names(named: &Named) -> Result<(), StoreError> {
    let mut seen = HashSet::new();
    for (name, _) in named {
        if !valid_new_name(name.as_bytes()) {
            return Err(StoreError::invalid(
                "name",
                "1 to 64 of a-z 0-9 . _ -, not only dots",
                format!("{name:?}"),
            ));
        }
        if !seen.insert(name) {
            return Err(StoreError::invalid("name", "each name once", format!("{name:?} twice")));
        }
    }
    Ok(())
}
