//! Collections that end with the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ciphervec_owner::search::QUERY_VERSION;

use crate::belief::choices::check_name;
use crate::belief::trust::Trust;
use crate::belief::vault::Vault;
use crate::change::CollectionRow;
use crate::change::Listing;
use crate::change::Segments;
use crate::error::Result;
use crate::face::Face;
use crate::hex::Hex;
use crate::host::Host;
use crate::local::blobs::{Blobs, Memory};
use crate::local::folder::{exists, missing, unpinned};
use crate::local::store::LocalStore;
use crate::store::{Accept, CollectionStore, Database, Lineages};

const PLACE: &str = "this process";

/// Collections in memory.
pub struct MemoryDatabase {
    face: Face,
    vault: Arc<Vault>,
    stores: Mutex<BTreeMap<String, Arc<LocalStore>>>,
}

impl MemoryDatabase {
    pub fn new(face: Face, vault: Arc<Vault>) -> Self {
        MemoryDatabase { face, vault, stores: Mutex::default() }
    }

    fn stores(&self) -> MutexGuard<'_, BTreeMap<String, Arc<LocalStore>>> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored(&self, name: &str) -> Result<Arc<LocalStore>> {
        check_name(name)?;
        let stores = self.stores();
        let names = || stores.keys().cloned().collect::<Vec<_>>();
        stores.get(name).cloned().ok_or_else(|| missing(self.face, name, PLACE, &names()))
    }
}

#[async_trait(?Send)]
impl Database for MemoryDatabase {
    fn place(&self) -> &str {
        PLACE
    }

    async fn rows(&self, _host: &dyn Host) -> Result<Vec<CollectionRow>> {
        let stores = self.stores();
        let row = |(name, store): (&String, &Arc<LocalStore>)| store.listing().row(name);
        Ok(stores.iter().map(row).collect())
    }

    async fn create(
        &self,
        _host: &dyn Host,
        name: &str,
        meta: Vec<u8>,
        attachments: BTreeMap<&'static str, Vec<u8>>,
        _lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        let lengths =
            attachments.iter().map(|(name, blob)| ((*name).to_owned(), blob.len() as u64));
        let listing = Listing {
            version: 0,
            head: Hex([0; 32]).to_string(),
            meta: meta.into(),
            segments: Segments::new(),
            attachments: lengths.collect(),
            query_version: QUERY_VERSION.into(),
            evaluation: None,
            fetch_version: 0,
        };
        let mut stores = self.stores();
        if stores.contains_key(name) {
            return Err(exists(self.face, name, PLACE));
        }
        let trust = Trust::of_folder(self.face, Arc::clone(&self.vault), PLACE, name);
        let blobs = Blobs::Memory(Memory::new(attachments));
        let store = Arc::new(LocalStore::new(trust, blobs, listing));
        stores.insert(name.to_owned(), Arc::clone(&store));
        Ok(store)
    }

    async fn open(
        &self,
        _host: &dyn Host,
        name: &str,
        accept: Accept<'_>,
        _lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        let store = self.stored(name)?;
        accept(&store.listing().meta)?;
        Ok(store)
    }

    async fn open_anew(
        &self,
        _host: &dyn Host,
        name: &str,
        seen: &Trust,
        _lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        Ok(Arc::new(self.stored(name)?.trusted(seen.without_past())))
    }

    async fn delete(&self, _host: &dyn Host, name: &str) -> Result<()> {
        check_name(name)?;
        let mut stores = self.stores();
        match stores.remove(name) {
            Some(_) => Ok(()),
            None => {
                Err(missing(self.face, name, PLACE, &stores.keys().cloned().collect::<Vec<_>>()))
            }
        }
    }

    async fn forget(&self, _host: &dyn Host, _name: &str) -> Result<()> {
        unpinned(self.face)
    }

    async fn trust(&self, _host: &dyn Host, name: &str) -> Result<Trust> {
        Ok(Trust::of_folder(self.face, Arc::clone(&self.vault), PLACE, name))
    }
}
