//! Segments that the store shows are opened and taken in, or passed over; with them the keys that the collection keeps.

use std::sync::Arc;

use ciphervec_owner::search::{OpenedSidecar, SealedSidecar, Standing};

use crate::belief::state::Shown;
use crate::change::{COVERED, EVALUATION, KEY_PAIR, SIDECAR, StoredSegment, TAGS, WRAP, union};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::replica::Replica;
use crate::threads::heavy;

/// Sidecars that are opened at once.
const AT_ONCE: usize = 512;

impl Replica {
    /// Takes in segments of the owner's state, or of a collection that has none. One that does not open is an error where the owner
    /// says that it is there.
    pub(super) async fn attach(
        &mut self,
        host: &dyn Host,
        shown: &Shown,
        segments: &[Arc<StoredSegment>],
    ) -> Result<()> {
        for some in segments.chunks(AT_ONCE) {
            for (segment, opened) in self.opened(host, some).await? {
                let aside = shown.aside.get(&segment.id).map_or(&[][..], Vec::as_slice);
                match opened
                    .and_then(|opened| self.count(&segment, opened, Standing::Stored, aside))
                {
                    Err(error)
                        if error.is_unreadable() && shown.state.is_none() && segment.has(WRAP) =>
                    {
                        self.refuse(&segment, &error.to_string());
                    }
                    Err(error) if error.is_unreadable() => {
                        return Error::corrupt(format!(
                            "segment {} of collection {} does not open, and its owner stored it: {error}",
                            segment.id,
                            self.name()
                        ));
                    }
                    done => done?,
                }
                if shown.state.is_some() && segment.has(TAGS) {
                    self.read(host, segment.id, TAGS).await?;
                }
            }
        }
        Ok(())
    }

    /// Takes in what came since the owner's state: segments of writers. Whatever else was put there, by a replay say, is passed over, as
    /// are the segments that the owner set aside.
    pub(super) async fn attach_appended(&mut self, host: &dyn Host, shown: &Shown) -> Result<()> {
        if !shown.aside.is_empty() {
            for segment in self.entries() {
                if self.routing.staged().contains(&segment.id) {
                    self.deleted.insert(segment.id, segment.deleted.clone());
                } else if shown.sets_aside(segment.id) && !self.deleted.contains_key(&segment.id) {
                    self.refuse(&segment, "it was set aside before");
                }
            }
        }
        let mut written = Vec::new();
        for segment in &shown.appended {
            if self.deleted.contains_key(&segment.id) {
                continue;
            }
            if self.description.members.is_some() {
                self.refuse(
                    segment,
                    "nobody who is a member signed for it: writers' rows don't count in a collection with members",
                );
            } else if !segment.has(WRAP) || !segment.has(SIDECAR) {
                self.refuse(
                    segment,
                    "neither its owner nor a writer added it: an old commit was sent again",
                );
            } else if !segment.deleted.is_empty() {
                self.refuse(segment, "rows of it were deleted, and not by its owner");
            } else {
                written.push(Arc::clone(segment));
            }
        }
        for some in written.chunks(AT_ONCE) {
            for (segment, opened) in self.opened(host, some).await? {
                match opened
                    .and_then(|opened| self.count(&segment, opened, Standing::Appended, &[]))
                {
                    Ok(()) => self.appended.push(segment.id),
                    Err(error) if error.is_unreadable() => {
                        self.refuse(&segment, &error.to_string())
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Each of these segments with its sidecar, opened on all threads.
    pub(super) async fn opened(
        &mut self,
        host: &dyn Host,
        segments: &[Arc<StoredSegment>],
    ) -> Result<Vec<(Arc<StoredSegment>, Result<OpenedSidecar>)>> {
        for blob in COVERED {
            let having: Vec<_> = segments.iter().filter(|one| one.has(blob)).cloned().collect();
            self.store.prefetch(host, &having, blob).await?;
        }
        let mut read = Vec::with_capacity(segments.len());
        for segment in segments {
            let wrap = match segment.has(WRAP) {
                true => Some(self.read(host, segment.id, WRAP).await),
                false => None,
            };
            let blobs = match wrap.transpose() {
                Ok(wrap) => {
                    self.read(host, segment.id, SIDECAR).await.map(|sidecar| (sidecar, wrap))
                }
                Err(error) => Err(error),
            };
            match blobs {
                Err(error) if !error.is_unreadable() => return Err(error),
                blobs => read.push((Arc::clone(segment), blobs)),
            }
        }
        let there: Vec<_> = read
            .iter()
            .filter(|(_, blobs)| blobs.is_ok())
            .map(|(segment, _)| Arc::clone(segment))
            .collect();
        let sealed: Vec<_> = read
            .iter()
            .filter_map(|(_, blobs)| blobs.as_ref().ok())
            .zip(&there)
            .map(|((sidecar, wrap), segment)| SealedSidecar {
                segment: segment.id,
                sidecar,
                wrap: wrap.as_deref(),
                rows: Some(segment.rows),
            })
            .collect();
        let mut opened = heavy(|| self.owner.open_sidecars(&sealed)).into_iter();
        let of = |(segment, blobs): (Arc<StoredSegment>, Result<_>)| {
            let done = match blobs {
                Ok(_) => opened
                    .next()
                    .map_or_else(|| Error::corrupt("a sidecar was lost"), |one| Ok(one?)),
                Err(error) => Err(error),
            };
            (segment, done)
        };
        Ok(read.into_iter().map(of).collect())
    }

    pub(super) fn count(
        &mut self,
        segment: &StoredSegment,
        opened: OpenedSidecar,
        standing: Standing,
        aside: &[u32],
    ) -> Result<()> {
        let before = self.directory.shadowed().count();
        let gone = union(&segment.deleted, &self.routing.hidden(segment.id));
        self.directory.attach_opened(&self.owner, opened, (&gone, aside), standing)?;
        self.deleted.insert(segment.id, segment.deleted.clone());
        if self.directory.shadowed().count() != before {
            self.losses += 1;
        }
        Ok(())
    }

    /// Passes over a segment, which must not stop the owner from reading the others.
    pub(super) fn refuse(&mut self, segment: &StoredSegment, reason: &str) {
        self.directory.refuse(segment.id);
        self.deleted.insert(segment.id, segment.deleted.clone());
        self.reasons.insert(segment.id, reason.to_owned());
    }

    /// What opens is what the owner sealed; the public key beside it, which anybody could write, must be its half.
    pub(super) async fn open_key_pair(&mut self, host: &dyn Host) -> Result<()> {
        if !self.description.has_key_pair() {
            return Ok(());
        }
        let pair = self.store.attachment(host, KEY_PAIR).await?;
        let given = self.store.attachment(host, EVALUATION).await?;
        for (name, data) in [(KEY_PAIR, &pair), (EVALUATION, &given)] {
            self.states.check_attachment(name, blake3::hash(data).as_bytes())?;
        }
        heavy(|| self.owner.open_key_pair(&pair))?;
        if given != self.owner.public_key()? {
            return Error::corrupt(format!(
                "the public key kept with collection {} is not the one of its key pair: it was replaced or damaged. Restore it from a copy.",
                self.name()
            ));
        }
        Ok(())
    }

    /// Lets the owner have the evaluation keys that queries of this epoch are answered with: those of the state, and no others.
    pub(super) async fn hold_evaluation(&mut self, host: &dyn Host) -> Result<()> {
        if !self.description.encrypts_queries() {
            return Ok(());
        }
        let expected = self.states.present.as_ref().map(|signed| signed.record.evaluation);
        let epoch = self.description.epoch;
        if self.evaluation == Some((epoch, expected)) {
            return Ok(());
        }
        let ours = heavy(|| self.owner.evaluation(epoch))?
            .map(|keys| *blake3::hash(&keys.to_bytes()).as_bytes());
        if expected.is_none() || ours != expected {
            let data = self.store.attachment(host, EVALUATION).await?;
            self.states.check_attachment(EVALUATION, blake3::hash(&data).as_bytes())?;
            heavy(|| self.owner.hold_evaluation(&data))?;
        }
        self.evaluation = Some((epoch, expected));
        Ok(())
    }
}
