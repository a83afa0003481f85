//! Collections in one folder, one sub-folder each, as a server lays them out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use ciphervec_owner::store::{self, Store, StoreError, shelf};

use crate::belief::choices::check_name;
use crate::belief::trust::Trust;
use crate::belief::vault::Vault;
use crate::change::CollectionRow;
use crate::error::{Error, Result};
use crate::face::Face;
use crate::host::Host;
use crate::local::blobs::{Blobs, error_of};
use crate::local::store::LocalStore;
use crate::store::{Accept, CollectionStore, Database, Lineages};
use crate::threads::heavy;

/// A folder of collections.
pub struct FolderDatabase {
    face: Face,
    vault: Arc<Vault>,
    root: PathBuf,
    place: String,
    read_only: bool,
}

impl FolderDatabase {
    /// Makes the folder, unless it is only read.
    pub fn new(face: Face, vault: Arc<Vault>, root: PathBuf, read_only: bool) -> Result<Self> {
        let place = root.display().to_string();
        if root.exists() && !root.is_dir() {
            return Err(Error::Storage(format!(
                "{place} is a file; a client needs a folder. Choose another path."
            )));
        }
        if read_only && !root.is_dir() {
            return Err(Error::Storage(format!(
                "{place} is not a folder; there is nothing to open read-only."
            )));
        }
        if !read_only {
            let made = std::fs::create_dir_all(&root);
            made.map_err(|error| {
                Error::Storage(format!("cannot create the folder {place}: {error}."))
            })?;
            shelf::sweep(&root).map_err(error_of)?;
        }
        Ok(FolderDatabase { face, vault, root, place, read_only })
    }

    fn writable(&self, doing: &str) -> Result<()> {
        match self.read_only {
            false => Ok(()),
            true => Err(Error::Storage(format!(
                "cannot {doing}: {} was opened for reading only.",
                self.place
            ))),
        }
    }

    /// Where a collection lies that is there.
    fn path(&self, name: &str) -> Result<PathBuf> {
        check_name(name)?;
        let path = self.root.join(name);
        if path.is_dir() {
            return Ok(path);
        }
        let names = shelf::names(&self.root).map_err(error_of)?;
        Err(missing(self.face, name, &self.place, &names))
    }

    fn opened(&self, trust: Trust, store: Store) -> Arc<dyn CollectionStore> {
        let listing = Blobs::listed(&store, None);
        Arc::new(LocalStore::new(trust, Blobs::Folder(store), listing))
    }

    fn read(&self, name: &str) -> Result<Store> {
        let path = self.path(name)?;
        let open = if self.read_only { Store::open_read_only } else { Store::open };
        let opened = heavy(|| open(&path));
        opened.map_err(error_of)
    }

    fn trusted(&self, name: &str) -> Trust {
        Trust::of_folder(self.face, Arc::clone(&self.vault), &self.place, name).at(&self.root)
    }
}

#[async_trait(?Send)]
impl Database for FolderDatabase {
    fn place(&self) -> &str {
        &self.place
    }

    async fn rows(&self, _host: &dyn Host) -> Result<Vec<CollectionRow>> {
        let mut rows = Vec::new();
        for name in shelf::names(&self.root).map_err(error_of)? {
            // One that is damaged says so when it is opened, and hides no other.
            let store = Store::open_read_only(&self.root.join(&name)).ok();
            let listed = store.map(|store| Blobs::listed(&store, None).row(&name));
            rows.push(listed.unwrap_or(CollectionRow { name, rows: 0, bytes: 0 }));
        }
        Ok(rows)
    }

    async fn create(
        &self,
        _host: &dyn Host,
        name: &str,
        meta: Vec<u8>,
        attachments: BTreeMap<&'static str, Vec<u8>>,
        _lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        self.writable("create a collection")?;
        let exists = || exists(self.face, name, &self.place);
        if self.root.join(name).exists() {
            return Err(exists());
        }
        let beside = attachments.into_iter().map(|(name, blob)| (name.to_owned(), blob));
        let change = store::Change { attachments: beside.collect(), ..store::Change::default() };
        let mut locked = None;
        let draft = shelf::Draft::write(&self.root, |path| {
            let mut store = Store::create(path, &meta)?;
            heavy(|| store.commit(change))?;
            // Others know by its lock that somebody makes it. Windows renames nothing that is open.
            locked = cfg!(unix).then_some(store);
            Ok::<_, StoreError>(())
        });
        let settled = draft.and_then(|draft| draft.settle(name)).map_err(error_of)?;
        drop(locked);
        let path = settled.ok_or_else(exists)?;
        Ok(self.opened(self.trusted(name), Store::open(&path).map_err(error_of)?))
    }

    async fn open(
        &self,
        _host: &dyn Host,
        name: &str,
        accept: Accept<'_>,
        _lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        let store = self.read(name)?;
        accept(store.meta())?;
        Ok(self.opened(self.trusted(name), store))
    }

    async fn open_beside(
        &self,
        _host: &dyn Host,
        name: &str,
        _lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        let path = self.path(name)?;
        let store = heavy(|| Store::open_read_only(&path)).map_err(error_of)?;
        Ok(self.opened(self.trusted(name), store))
    }

    async fn open_anew(
        &self,
        _host: &dyn Host,
        name: &str,
        seen: &Trust,
        _lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        Ok(self.opened(seen.without_past(), self.read(name)?))
    }

    async fn delete(&self, host: &dyn Host, name: &str) -> Result<()> {
        self.writable("delete a collection")?;
        let path = self.path(name)?;
        drop(Store::open(&path).map_err(error_of)?); // refuses while another writer has it
        shelf::remove(&self.root, name).map_err(error_of)?;
        let what = format!("the deletion of {}", self.face.quoted(name));
        let trust = self.trusted(name);
        let gone = async { trust.forget_home(host).await.map(drop) };
        Trust::afterwards(host, &what, gone).await
    }

    async fn forget(&self, host: &dyn Host, name: &str) -> Result<()> {
        check_name(name)?;
        match self.trusted(name).forget_home(host).await? {
            true => Ok(()),
            false => unpinned(self.face),
        }
    }

    async fn trust(&self, _host: &dyn Host, name: &str) -> Result<Trust> {
        Ok(self.trusted(name))
    }
}

pub fn exists(face: Face, name: &str, place: &str) -> Error {
    Error::CollectionExists(format!(
        "the collection {} exists already in {place}. Use {}, {}, or another name.",
        face.quoted(name),
        face.named("get_collection"),
        face.named("get_or_create_collection")
    ))
}

pub fn missing(face: Face, name: &str, place: &str, names: &[String]) -> Error {
    let there: Vec<_> = names.iter().take(10).map(|name| face.quoted(name)).collect();
    Error::CollectionNotFound(format!(
        "no collection {} in {place}; there are: {}. Use {} to make it.",
        face.quoted(name),
        if there.is_empty() { "none".to_owned() } else { there.join(", ") },
        face.named("create_collection")
    ))
}

/// A collection here is known by its origin: one that was made anew under its name is another, but for those with members.
pub fn unpinned(face: Face) -> Result<()> {
    Error::input(format!(
        "nothing is pinned by name where there is no server. Accept a collection that was put back from a copy with {}.",
        face.named("accept_restore")
    ))
}
