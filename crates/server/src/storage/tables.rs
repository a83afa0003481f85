//! Keyed tables that a publisher put here, a file each, and answers to lookups in them. A table is replaced in one step. Server
//! side, no key.

use super::collection::Engine;
use super::database::Database;
use super::error::DatabaseError;
use super::fetching::{Fetched, TableKey, refused};
use super::place::{check_name, failed, sync_folder};
use bytes::Bytes;
use ciphervec::fetch::FetchTable;
use ciphervec::keyed::KeyedTable;
use ciphervec::store::StoreError;
use ciphervec::store::shelf::valid_name;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// How the file of a table ends.
const SUFFIX: &str = ".table";
/// How one begins that is being written.
const DRAFT: &str = ".new-";

/// A table of the place.
pub struct StoredTable {
    table: KeyedTable,
    /// Which file it was read from.
    seen: (u64, SystemTime),
}

/// Closes on drop what was not settled.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        // Once it has its name there is no such file.
        let _ = fs::remove_file(&self.0);
    }
}

/// The tables beside the collections of a folder.
pub struct Tables {
    root: Option<PathBuf>,
    engine: Arc<Engine>,
    open: Mutex<BTreeMap<String, Arc<StoredTable>>>,
}

impl StoredTable {
    /// What was published.
    pub fn table(&self) -> &KeyedTable {
        &self.table
    }

    /// What sessions are filed under, and the table in memory.
    fn key(&self) -> TableKey {
        let name = *self.table.description().name();
        let mut index = [0; 8];
        index.copy_from_slice(&name[..8]);
        (index, name)
    }
}

impl Tables {
    /// The tables beside the collections of a database; what a killed process left half written is cleared away.
    pub fn open(database: &Database) -> Arc<Self> {
        let root = database.tables();
        for entry in root.iter().filter_map(|root| fs::read_dir(root).ok()).flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(DRAFT) {
                // What can't be removed harms nothing.
                let _ = fs::remove_file(entry.path());
            }
        }
        let engine = Arc::clone(database.engine());
        Arc::new(Tables { root, engine, open: Mutex::default() })
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<String, Arc<StoredTable>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn root(&self) -> Result<&Path, DatabaseError> {
        self.root.as_deref().ok_or_else(|| {
            DatabaseError::Unsupported(
                "keyed tables are served from a folder, and the data of this server is in a bucket"
                    .to_owned(),
            )
        })
    }

    fn path(&self, name: &str) -> Result<PathBuf, DatabaseError> {
        Ok(self.root()?.join(format!("{name}{SUFFIX}")))
    }

    /// The names of all tables, sorted.
    ///
    /// # Errors
    /// [`DatabaseError::Io`] where they cannot be listed.
    pub fn names(&self) -> Result<Vec<String>, DatabaseError> {
        let Some(root) = &self.root else { return Ok(Vec::new()) };
        let entries = match fs::read_dir(root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("list the folder", root, &error)),
        };
        let files = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let names = files.filter_map(|file| file.strip_suffix(SUFFIX).map(str::to_owned));
        let mut names: Vec<String> = names.filter(|name| valid_name(name)).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The table of that name, as its file is now.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`]; [`DatabaseError::Corrupt`] for a file that is none, [`DatabaseError::Io`].
    pub fn get(&self, name: &str) -> Result<Arc<StoredTable>, DatabaseError> {
        let unknown = || DatabaseError::NotFound(format!("no table {name:?}"));
        if !valid_name(name) || self.root.is_none() {
            return Err(unknown());
        }
        let path = self.path(name)?;
        let known = match fs::metadata(&path) {
            Ok(known) => known,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.forget(name);
                return Err(unknown());
            }
            Err(error) => return Err(failed("read", &path, &error)),
        };
        let modified = known.modified().map_err(|error| failed("read", &path, &error))?;
        let seen = (known.len(), modified);
        if let Some(table) = self.opened().get(name).filter(|table| table.seen == seen) {
            return Ok(Arc::clone(table));
        }
        self.forget(name);
        let table = KeyedTable::open(&path).map_err(damaged)?;
        let table = Arc::new(StoredTable { table, seen });
        self.opened().insert(name.to_owned(), Arc::clone(&table));
        Ok(table)
    }

    /// Lets go of what was read of a table whose file has changed, or is gone.
    fn forget(&self, name: &str) {
        if let Some(table) = self.opened().remove(name) {
            self.engine.fetching.let_go(&table.key());
            self.engine.count_taken();
        }
    }

    /// Stores a table under a name, in the place of what was there. Every bucket of it is checked.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for a name or bytes that are none, [`DatabaseError::Limit`] for a table that there is no
    /// memory to serve, [`DatabaseError::Full`], [`DatabaseError::Io`].
    pub fn put(
        &self,
        name: &str,
        bytes: &mut impl Read,
    ) -> Result<Arc<StoredTable>, DatabaseError> {
        check_name(name)?;
        let (root, path) = (self.root()?, self.path(name)?);
        fs::create_dir_all(root).map_err(|error| failed("create the folder", root, &error))?;
        let mut drawn = [0; 8];
        getrandom::fill(&mut drawn).map_err(|error| DatabaseError::Io(error.to_string()))?;
        let draft = Draft(root.join(format!("{DRAFT}{:016x}", u64::from_le_bytes(drawn))));
        let mut file =
            File::create_new(&draft.0).map_err(|error| failed("create", root, &error))?;
        let written =
            io::copy(bytes, &mut file).and_then(|_| file.flush()).and_then(|()| file.sync_all());
        written.map_err(|error| failed("write", &draft.0, &error))?;
        let table = KeyedTable::open(&draft.0).map_err(refused)?;
        self.check(&table)?;
        self.engine.pool.install(|| table.verify()).map_err(refused)?;
        fs::rename(&draft.0, &path).map_err(|error| failed("rename", &path, &error))?;
        sync_folder(root)?;
        self.get(name)
    }

    /// Removes a table.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::Io`].
    pub fn remove(&self, name: &str) -> Result<(), DatabaseError> {
        self.get(name)?;
        let path = self.path(name)?;
        fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
        self.forget(name);
        sync_folder(self.root()?)
    }

    fn check(&self, table: &KeyedTable) -> Result<u64, DatabaseError> {
        let geometry = table.description().geometry();
        let shape = geometry.shape(*table.description().name()).map_err(refused)?;
        let bytes = shape.table_bytes().saturating_mul(geometry.parts as u64);
        self.engine.fetching.check(bytes, 0)?;
        Ok(bytes)
    }

    /// Takes in the evaluation keys of a session of lookups, for those of this token.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] for bytes that are no such keys, [`DatabaseError::SessionExists`].
    pub fn put_keys(
        &self,
        table: &StoredTable,
        token: &str,
        bytes: &[u8],
    ) -> Result<(), DatabaseError> {
        let engine = &self.engine;
        engine.fetching.put_keys(&engine.pool, (token, table.key().0), bytes)?;
        engine.count_taken();
        Ok(())
    }

    /// Answers a token's query for buckets of the table that `id` names.
    ///
    /// # Errors
    /// [`DatabaseError::TableMoved`] if the table was replaced, [`DatabaseError::FetchKeysMissing`], [`DatabaseError::Limit`]
    /// without memory for it, [`DatabaseError::Invalid`] for bytes that are no query of it, [`DatabaseError::Busy`].
    pub async fn look_up(
        self: &Arc<Self>,
        table: Arc<StoredTable>,
        (token, id): (&str, [u8; 16]),
        query: Bytes,
    ) -> Result<Fetched, DatabaseError> {
        let key = table.key();
        if id != key.1 {
            return Err(DatabaseError::TableMoved);
        }
        let (tables, engine) = (Arc::clone(self), &self.engine);
        let served = move || tables.served(&table);
        engine.fetching.answer(&engine.pool, (token, key.0), query, served).await
    }

    fn served(&self, table: &StoredTable) -> Result<Arc<FetchTable>, DatabaseError> {
        let (fetching, key) = (&self.engine.fetching, table.key());
        if let Some(served) = fetching.get(&key) {
            return Ok(served);
        }
        let making = fetching.make_room(self.check(&table.table)?);
        self.engine.count_taken();
        let served = self.engine.pool.install(|| table.table.served()).map_err(damaged)?;
        let served = Arc::new(served);
        fetching.keep(key, Arc::clone(&served));
        drop(making);
        self.engine.count_taken();
        Ok(served)
    }
}

/// A file that was right when it was put here.
fn damaged(error: ciphervec::Error) -> DatabaseError {
    match error {
        ciphervec::Error::Store(error @ StoreError::Io { .. }) => error.into(),
        error => DatabaseError::Corrupt(error.to_string()),
    }
}
