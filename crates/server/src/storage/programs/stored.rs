//! One program in its store: durable changes of its keys and inputs, and reads of what is stored.
//!
//! A program is a store of its own: its record is the store's description; plan, keys and kept inputs
//! are attachments. So every change is all or nothing, and is made once under a commit key.

use super::record::Record;
use crate::storage::collection::Home;
use crate::storage::error::DatabaseError;
use ciphervec::store::{Change, CommitKey, Committed, Store, StoreError, View};
use ciphervec_arith::buffer::AlignedBytes;
use rayon::ThreadPool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// What other writers of a shared place have done is seen this much later at most.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Attempts at a change that other writers of a shared place get in the way of.
const ATTEMPTS: u32 = 32;

/// An edit of a record: the attachments to drop with it, or nothing to be done.
type Edit<'a> = dyn Fn(&mut Record) -> Result<Option<Vec<String>>, DatabaseError> + 'a;

/// One committed state.
pub struct Shown {
    pub(super) view: View,
    /// What is known of the program.
    pub record: Record,
}

impl Shown {
    fn of(name: &str, view: View) -> Result<Arc<Self>, DatabaseError> {
        let record = Record::read(name, &view.manifest().meta)?;
        Ok(Arc::new(Shown { view, record }))
    }

    /// An attachment, every block checked.
    pub(super) fn read(
        &self,
        name: &str,
        pool: &ThreadPool,
    ) -> Result<AlignedBytes, DatabaseError> {
        let mut attachments = self.view.manifest().attachments();
        let blob = attachments.find(|(found, _)| *found == name).map(|(_, blob)| blob);
        let blob = blob.ok_or_else(|| {
            DatabaseError::Corrupt(format!(
                "the attachment {name:?} that a program names is missing"
            ))
        })?;
        pool.install(|| self.view.stored(blob).read()).map_err(|error| match error {
            // Gone with a newer state.
            StoreError::Missing { .. } => DatabaseError::Moved(error.to_string()),
            error => error.into(),
        })
    }
}

/// A program and its store.
pub struct StoredProgram {
    name: String,
    home: Home,
    /// None after a failure that left unknown what is on disk, until it is opened anew.
    writer: Mutex<Option<Store>>,
    shown: RwLock<Arc<Shown>>,
    looked: Mutex<Instant>,
}

impl StoredProgram {
    pub(super) fn open(name: &str, home: Home) -> Result<Arc<Self>, DatabaseError> {
        let store = home.open()?;
        let shown = Shown::of(name, store.view())?;
        Ok(Arc::new(StoredProgram {
            name: name.to_owned(),
            home,
            writer: Mutex::new(Some(store)),
            shown: RwLock::new(shown),
            looked: Mutex::new(Instant::now()),
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn writer(&self) -> MutexGuard<'_, Option<Store>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present state.
    pub fn shown(&self) -> Arc<Shown> {
        Arc::clone(&self.shown.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn show(&self, store: &Store) -> Result<(), DatabaseError> {
        let shown = Shown::of(&self.name, store.view())?;
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = shown;
        Ok(())
    }

    /// Waits until whoever changes the program now is done, and moves on to what others have done.
    pub(super) fn settle(&self) -> Result<(), DatabaseError> {
        let mut writer = self.writer();
        if let Home::Bucket(_) = self.home {
            self.refreshed(&mut writer)?;
        }
        Ok(())
    }

    /// Moves on to what other writers of a shared place have done, if nobody has looked for a while.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if it was removed. What else cannot be looked at now is looked at
    /// by whoever needs it.
    pub(super) fn catch_up(&self) -> Result<(), DatabaseError> {
        let Home::Bucket(_) = self.home else { return Ok(()) };
        {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            if looked.elapsed() < LOOK_EVERY {
                return Ok(());
            }
            *looked = Instant::now();
        }
        // Whoever changes it at this moment looks by itself.
        let Ok(mut writer) = self.writer.try_lock() else { return Ok(()) };
        match self.refreshed(&mut writer) {
            Err(error @ DatabaseError::NotFound(_)) => Err(error),
            Err(error) => {
                tracing::warn!(program = self.name, %error, "the bucket could not be looked at");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn refreshed(&self, writer: &mut Option<Store>) -> Result<(), DatabaseError> {
        let store = self.open_writer(writer)?;
        if store.refresh()? {
            self.show(store)?;
        }
        Ok(())
    }

    /// The writer, opened anew after a failure that left unknown what is on disk.
    fn open_writer<'a>(
        &self,
        writer: &'a mut Option<Store>,
    ) -> Result<&'a mut Store, DatabaseError> {
        if let Some(store) = writer {
            return Ok(store);
        }
        let store = self.home.open()?;
        self.show(&store)?;
        Ok(writer.insert(store))
    }

    /// What an earlier change under that key made, if there was one.
    pub fn committed(&self, key: Option<&CommitKey>) -> Result<Option<Committed>, DatabaseError> {
        let Some(key) = key else { return Ok(None) };
        let mut writer = self.writer();
        Ok(self.open_writer(&mut writer)?.committed(key)?)
    }

    /// Sets attachments, and edits the record; `edit` returns the attachments to drop, or nothing if
    /// there is nothing to be done. All of it is durable, or nothing. Whether it was done now.
    pub(super) fn change(
        &self,
        key: Option<CommitKey>,
        attachments: Vec<(String, Vec<u8>)>,
        edit: &Edit<'_>,
    ) -> Result<bool, DatabaseError> {
        let mut writer = self.writer();
        let mut change = Change { attachments, ..Change::default() };
        let mut attempt = 0;
        let frees = loop {
            let store = self.open_writer(&mut writer)?;
            if let Some(key) = &key
                && store.committed(key)?.is_some()
            {
                return Ok(false);
            }
            let mut record = Record::read(&self.name, store.meta())?;
            let Some(dropped) = edit(&mut record)? else { return Ok(false) };
            let replaced = change.attachments.iter().any(|(name, _)| {
                let mut held = store.attachments();
                held.any(|(found, _)| found == name)
            });
            let frees = replaced || !dropped.is_empty();
            change.drop_attachments = dropped;
            change.set_meta = Some(record.to_json());
            attempt += 1;
            match store.commit_keyed(&change, key) {
                Ok(_) => break frees,
                // Another server was faster: this change is looked at again on top of its.
                Err(StoreError::Conflict { .. }) if store.is_shared() && attempt < ATTEMPTS => {
                    store.refresh()?;
                }
                Err(error) => {
                    if leaves_doubt(&error) {
                        *writer = None;
                    }
                    return Err(error.into());
                }
            }
        };
        let store = self.open_writer(&mut writer)?;
        self.show(store)?;
        // What was removed or replaced goes now. What cannot go now goes with the next change.
        if frees {
            if let Err(error) = store.purge() {
                tracing::warn!(program = self.name, %error, "replaced bytes are still stored");
                if leaves_doubt(&error) {
                    *writer = None;
                }
            } else {
                self.show(store)?;
            }
        }
        Ok(true)
    }

    /// Gives the lock back.
    pub(super) fn close(&self) {
        *self.writer() = None;
    }

    /// Drops the program from a shared place.
    pub(super) fn drop_on(&self) -> Result<(), DatabaseError> {
        let mut writer = self.writer();
        let store = self.open_writer(&mut writer)?;
        store.refresh()?;
        Ok(store.drop_on()?)
    }
}

/// Whether it is unknown, after that, what is on disk; or whether it may be possible to write later.
fn leaves_doubt(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Sync { .. }
            | StoreError::Poisoned { .. }
            | StoreError::Conflict { .. }
            | StoreError::ReadOnly { .. }
    )
}
