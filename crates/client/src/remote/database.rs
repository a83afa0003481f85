//! The collections of one server, as far as the token may see them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;

use crate::belief::choices::check_name;
use crate::belief::description::check_key;
use crate::belief::trust::Trust;
use crate::belief::vault::Vault;
use crate::change::Change;
use crate::change::CollectionRow;
use crate::change::Listing;
use crate::error::{Error, Result};
use crate::face::Face;
use crate::host::Host;
use crate::remote::cache::BlobCache;
use crate::remote::frame;
use crate::remote::listing::public_parameters;
use crate::remote::session::{Call, Session};
use crate::remote::store::RemoteStore;
use crate::sorting::sort_by;
use crate::store::{Accept, CollectionStore, Database, Lineages};
use crate::writing::writing;

/// A server.
pub struct RemoteDatabase {
    pub face: Face,
    pub session: Arc<Session>,
    pub vault: Arc<Vault>,
    pub cache: Arc<BlobCache>,
}

impl RemoteDatabase {
    async fn missing(&self, host: &dyn Host, name: &str) -> Result<Error> {
        let names: Vec<_> =
            self.rows(host).await?.iter().take(10).map(|row| self.face.quoted(&row.name)).collect();
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Ok(Error::CollectionNotFound(format!(
            "no collection {} on {} that this token may see; there are: {there}. Use {} to make it.",
            self.face.quoted(name),
            self.session.url,
            self.face.named("create_collection")
        )))
    }

    async fn listing(&self, host: &dyn Host, name: &str) -> Result<Option<Listing>> {
        let doing = format!("cannot open {}", self.face.quoted(name));
        let call = Call { also: &[404], ..Call::default() };
        let reply = self.session.call(host, "GET", &path_of(name), &doing, call).await?;
        if reply.head.status == 404 {
            return Ok(None);
        }
        Listing::read(&reply.body, name, &self.session.url, None).map(Some)
    }

    async fn store(
        &self,
        host: &dyn Host,
        name: &str,
        listing: Listing,
        lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        let trust = self.trust(host, name).await;
        if matches!(trust, Err(Error::Mismatch(_)))
            && !self.vault.is_personal()
            && let Some((_, key_id)) = public_parameters(&listing.meta)
        {
            // What was seen is under other keys, and so is the collection: the wrong ones were given.
            check_key(self.face, name, &self.vault.key_id(), &key_id)?;
        }
        self.store_trusting(host, name, trust?, listing, lineage).await
    }

    async fn store_trusting(
        &self,
        host: &dyn Host,
        name: &str,
        trust: Trust,
        listing: Listing,
        lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        let (session, cache) = (Arc::clone(&self.session), Arc::clone(&self.cache));
        let store =
            RemoteStore::open(self.face, host, session, name, trust, cache, listing, lineage);
        Ok(Arc::new(store.await?))
    }

    async fn create_new(
        &self,
        host: &dyn Host,
        name: &str,
        meta: Vec<u8>,
        attachments: BTreeMap<&'static str, Vec<u8>>,
        lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        let doing = format!("cannot create {}", self.face.quoted(name));
        // Whatever was seen under this name, with these keys or with others, is of a collection that this one is not.
        let vault = Arc::clone(&self.vault);
        Trust::new(self.face, vault, &self.session.url, name).prepare(host).await?;
        let change = Change { meta: Some(meta), attachments, ..Change::default() };
        let body = frame::encode(&change, &HashMap::new());
        let headers = vec![("Content-Type", "application/octet-stream".to_owned())];
        let call = Call {
            body: Some(&body),
            headers,
            also: &[201, 409],
            not_200: true,
            ..Call::default()
        };
        let reply = self.session.call(host, "PUT", &path_of(name), &doing, call).await?;
        let listing = match reply.head.status {
            201 => Some(Listing::read(&reply.body, name, &self.session.url, None)?),
            // The answer to an attempt that succeeded may have got lost.
            _ if reply.failed > 0 => self.listing(host, name).await?,
            _ => None,
        };
        // No two descriptions are the same.
        let made = listing.filter(|listing| Some(&*listing.meta) == change.meta.as_deref());
        let listing = made.ok_or_else(|| self.exists(name))?;
        Trust::drop_all(host, &self.vault, &self.session.url, name).await?;
        self.store(host, name, listing, lineage).await
    }

    async fn delete_all(&self, host: &dyn Host, name: &str) -> Result<()> {
        check_name(name)?;
        let doing = format!("cannot delete {}", self.face.quoted(name));
        self.trust(host, name).await?.prepare(host).await?;
        let call = Call { also: &[204, 404], not_200: true, ..Call::default() };
        let reply = self.session.call(host, "DELETE", &path_of(name), &doing, call).await?;
        // A repetition of an attempt that succeeded does not find it any more.
        if reply.head.status == 404 && reply.failed == 0 {
            return Err(Error::CollectionNotFound(format!(
                "{doing}: there is none of that name on {} that this token may see.",
                self.session.url
            )));
        }
        let what = format!("the deletion of {}", self.face.quoted(name));
        let gone = Trust::drop_all(host, &self.vault, &self.session.url, name);
        Trust::afterwards(host, &what, gone).await
    }

    fn exists(&self, name: &str) -> Error {
        Error::CollectionExists(format!(
            "the collection {} exists already on {}. Use {}, {}, or another name.",
            self.face.quoted(name),
            self.session.url,
            self.face.named("get_collection"),
            self.face.named("get_or_create_collection")
        ))
    }
}

#[async_trait(?Send)]
impl Database for RemoteDatabase {
    fn place(&self) -> &str {
        &self.session.url
    }

    async fn rows(&self, host: &dyn Host) -> Result<Vec<CollectionRow>> {
        #[derive(Deserialize)]
        struct Said {
            collections: Vec<CollectionRow>,
        }
        let doing = "cannot list the collections";
        let reply =
            self.session.call(host, "GET", "/v1/collections", doing, Call::default()).await?;
        let Said { mut collections } = self.session.json(&reply, doing)?;
        if !collections.iter().all(|one| check_name(&one.name).is_ok()) {
            return Err(Error::server(format!(
                "{doing}: {} answered in a way that is not understood. Check the versions on both sides.",
                self.session.url
            )));
        }
        sort_by(&mut collections, |a, b| a.name.cmp(&b.name));
        Ok(collections)
    }

    async fn create(
        &self,
        host: &dyn Host,
        name: &str,
        meta: Vec<u8>,
        attachments: BTreeMap<&'static str, Vec<u8>>,
        lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        writing!(self.create_new(host, name, meta, attachments, lineage).await)
    }

    async fn open(
        &self,
        host: &dyn Host,
        name: &str,
        accept: Accept<'_>,
        lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        check_name(name)?;
        if let Some(listing) = self.listing(host, name).await? {
            accept(&listing.meta)?;
            return self.store(host, name, listing, lineage).await;
        }
        Err(self.missing(host, name).await?)
    }

    async fn open_anew(
        &self,
        host: &dyn Host,
        name: &str,
        seen: &Trust,
        lineage: Lineages,
    ) -> Result<Arc<dyn CollectionStore>> {
        let Some(listing) = self.listing(host, name).await? else {
            return Err(self.missing(host, name).await?);
        };
        self.store_trusting(host, name, seen.without_past(), listing, lineage).await
    }

    async fn delete(&self, host: &dyn Host, name: &str) -> Result<()> {
        writing!(self.delete_all(host, name).await)
    }

    async fn forget(&self, host: &dyn Host, name: &str) -> Result<()> {
        check_name(name)?;
        Trust::forget(host, &self.vault, &self.session.url, name).await
    }

    async fn trust(&self, host: &dyn Host, name: &str) -> Result<Trust> {
        Trust::open(self.face, host, Arc::clone(&self.vault), &self.session.url, name).await
    }
}

fn path_of(name: &str) -> String {
    format!("/v1/collections/{name}")
}
