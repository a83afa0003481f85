//! A client: the collections of one server that holds no key.

#[cfg(feature = "folder")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ciphervec_owner::Keys;

use crate::belief::choices::{Choices, check_name};
use crate::belief::description::{Description, refuse_open};
use crate::belief::holder::Holder;
use crate::belief::signed;
use crate::belief::trust::{Lineage, Trust};
use crate::belief::vault::Vault;
use crate::change::{CollectionRow, STATE, SegmentInfo};
use crate::collection::Collection;
use crate::copying::copy;
use crate::error::{Error, Result};
use crate::face::Face;
use crate::host::Host;
use crate::keyed::{KeyedPlace, KeyedTable, TableRow, list_tables};
#[cfg(feature = "folder")]
use crate::local::{folder::FolderDatabase, memory::MemoryDatabase};
use crate::noting::Noting;
use crate::remote::address::{Token, base_url};
use crate::remote::cache::BlobCache;
use crate::remote::database::RemoteDatabase;
use crate::remote::session::Session;
use crate::replica::fetch::Fetch;
use crate::replica::query_keys::QUERIES_PER_KEY;
use crate::replica::{Opened, Replica, masks};
use crate::store::{CollectionStore, Database, Lineages, Verified};

/// How often a collection that others change is opened anew.
const ATTEMPTS: usize = 8;

/// What a client is made of.
pub struct ClientOptions {
    /// The server's.
    pub url: String,
    /// A master key or a member's identity; none for collections in mode `open`.
    pub keys: Option<Holder>,
    /// What the server knows this client by.
    pub token: Option<String>,
    /// Whether the network to a plain `http://` on another machine is trusted.
    pub insecure: bool,
    /// For one request, or one piece of an upload, with all its attempts.
    pub timeout: Duration,
    /// After the first attempt.
    pub retries: u32,
    /// Sealed blobs that are kept, so that they are not fetched again.
    pub cache_bytes: u64,
    /// How rows are read where a call leaves that open.
    pub fetch: Fetch,
    /// After so many queries the next one begins another query key: the fewer, the less a server can learn of one by lying.
    pub queries_per_key: usize,
    /// Who speaks to the user.
    pub face: Face,
}

impl ClientOptions {
    /// The defaults: no keys, no token, 60 s, 4 retries, 256 MiB.
    pub fn new(url: impl Into<String>) -> Self {
        ClientOptions {
            url: url.into(),
            keys: None,
            token: None,
            insecure: false,
            timeout: Duration::from_secs(60),
            retries: 4,
            cache_bytes: 256 << 20,
            fetch: Fetch::Auto,
            queries_per_key: QUERIES_PER_KEY,
            face: Face::Rust,
        }
    }
}

/// What is stored under a collection's name.
#[derive(Clone, Debug)]
pub struct Look {
    /// The description, sealed in part.
    pub meta: Arc<[u8]>,
    /// The number of its commit.
    pub version: u64,
    /// Oldest first.
    pub segments: Vec<SegmentInfo>,
}

/// Collections on one server, or in one folder.
pub struct Client {
    face: Face,
    keys: Option<Holder>,
    fetch: Fetch,
    queries_per_key: usize,
    database: Box<dyn Database>,
    /// Of a server, what its keyed tables are asked through.
    remote: Option<(Arc<Session>, Arc<Vault>)>,
}

impl Client {
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// [`Error::Input`] for a URL or token that is none, and for another number of queries than a key may serve.
    pub fn new(options: ClientOptions) -> Result<Self> {
        let ClientOptions {
            url,
            keys,
            token,
            insecure,
            timeout,
            retries,
            cache_bytes,
            fetch,
            queries_per_key,
            face,
        } = options;
        if !(1..=QUERIES_PER_KEY).contains(&queries_per_key) {
            return Error::input(format!(
                "a query key serves 1 to {QUERIES_PER_KEY} queries, got {queries_per_key}."
            ));
        }
        let vault = Arc::new(Holder::vault(keys.as_ref())?);
        let token = token.as_deref().map(Token::new).transpose()?;
        let session = Arc::new(Session::new(base_url(&url, insecure)?, token, timeout, retries));
        let cache = Arc::new(BlobCache::new(Arc::clone(&vault), cache_bytes));
        let remote = Some((Arc::clone(&session), Arc::clone(&vault)));
        let database = Box::new(RemoteDatabase { face, session, vault, cache });
        Ok(Client { face, keys, fetch, queries_per_key, database, remote })
    }

    /// Collections in a folder, which this process searches itself; it is made if it is not there. One process writes to a collection at
    /// a time; with `read_only` it is read beside one that does. Without keys, collections in mode `open`.
    ///
    /// # Errors
    /// [`Error::Storage`] for a folder that can't be used.
    #[cfg(feature = "folder")]
    pub fn in_folder(
        face: Face,
        folder: impl Into<PathBuf>,
        keys: Option<Holder>,
        read_only: bool,
    ) -> Result<Self> {
        let vault = Arc::new(Holder::vault(keys.as_ref())?);
        let database = FolderDatabase::new(face, vault, folder.into(), read_only)?;
        Ok(Client {
            face,
            keys,
            fetch: Fetch::Auto,
            queries_per_key: QUERIES_PER_KEY,
            database: Box::new(database),
            remote: None,
        })
    }

    /// Collections in memory, which end with the client.
    ///
    /// # Errors
    /// For keys that nothing can be derived from.
    #[cfg(feature = "folder")]
    pub fn in_memory(face: Face, keys: Option<Holder>) -> Result<Self> {
        let vault = Arc::new(Holder::vault(keys.as_ref())?);
        let database = Box::new(MemoryDatabase::new(face, vault));
        Ok(Client {
            face,
            keys,
            fetch: Fetch::Auto,
            queries_per_key: QUERIES_PER_KEY,
            database,
            remote: None,
        })
    }

    /// Where the collections are: a server's URL, or a folder.
    pub fn place(&self) -> &str {
        self.database.place()
    }

    /// Shows the server another token from now on: one that an identity provider signs is valid for minutes.
    ///
    /// # Errors
    /// [`Error::Input`] for a token that is none, and where there is no server.
    pub fn set_token(&self, token: &str) -> Result<()> {
        let Some((session, _)) = &self.remote else {
            return Error::input("a token is for a server; this client has a folder or memory.");
        };
        session.set_token(Token::new(token)?);
        Ok(())
    }

    /// That a collection may be made of these choices.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn check_new(&self, choices: &Choices) -> Result<()> {
        Description::new(self.face, self.keys.as_ref(), choices, 0).map(drop)
    }

    /// Makes an empty collection.
    ///
    /// # Errors
    /// [`Error::CollectionExists`], [`Error::Input`].
    pub async fn create_collection(
        &self,
        host: &dyn Host,
        choices: &Choices,
    ) -> Result<Collection> {
        let noting = Noting::of(host, "create", &choices.name);
        let (holder, now) = (self.keys.as_ref(), host.clock().as_secs());
        let description = Description::new(self.face, holder, choices, now)?;
        let owner = description.owner(self.face, self.keys.as_ref())?;
        let meta = description.write(self.face, &owner)?;
        let mut attachments = description.beside(&owner)?;
        if description.authenticated {
            let by = holder.and_then(Holder::identity).map(|identity| &**identity);
            let state = signed::first(&owner, &description, &meta, &attachments, now, by)?;
            attachments.insert(STATE, state);
        }
        let store = self
            .database
            .create(host, &choices.name, meta, attachments, self.lineages(&choices.name))
            .await?;
        let what = format!("the collection {}", self.face.quoted(&choices.name));
        let forgotten = async { store.trust().forget_home(host).await.map(drop) };
        Trust::afterwards(host, &what, forgotten).await?;
        let made = self.collection(host, store, description).await?;
        noting.done(0);
        Ok(made)
    }

    /// Opens a collection that is there. One in mode `open` is refused where there are keys, unless that is allowed; `expect` is a
    /// checkpoint that its history must have.
    ///
    /// # Errors
    /// [`Error::CollectionNotFound`], [`Error::WrongKey`], [`Error::Corrupt`], [`Error::RolledBack`], [`Error::Mismatch`].
    pub async fn get_collection(
        &self,
        host: &dyn Host,
        name: &str,
        allow_open: bool,
        expect: Option<&str>,
    ) -> Result<Collection> {
        let noting = Noting::of(host, "open", name);
        let accept = |meta: &[u8]| match self.keys.is_some() && !allow_open {
            true => refuse_open(self.face, meta, name),
            false => Ok(()),
        };
        let store = self.database.open(host, name, &accept, self.lineages(name)).await?;
        let meta = Arc::clone(&store.listing().meta);
        let description = Description::read(self.face, &meta, name, self.keys.as_ref())?;
        let collection = self.collection(host, store, description).await?;
        if let Some(checkpoint) = expect {
            collection.expect(host, checkpoint).await?;
        }
        noting.done(0);
        Ok(collection)
    }

    /// Opens the collection, or makes it.
    ///
    /// # Errors
    /// [`Error::Input`] when it is there with other choices.
    pub async fn get_or_create_collection(
        &self,
        host: &dyn Host,
        choices: &Choices,
    ) -> Result<Collection> {
        // Checked, whether or not it is there.
        self.check_new(choices)?;
        let allow_open = choices.mode == ciphervec_owner::Mode::Open;
        let get = || self.get_collection(host, &choices.name, allow_open, None);
        let collection = match get().await {
            Err(Error::CollectionNotFound(_)) => {
                match self.create_collection(host, choices).await {
                    // Of several clients that come here at once, one makes it and the others open it.
                    Err(Error::CollectionExists(_)) => get().await?,
                    made => return made,
                }
            }
            got => got?,
        };
        collection.check_choices(self.face, choices).await?;
        Ok(collection)
    }

    /// The master key, for what has no members.
    fn master(&self) -> Result<Option<Arc<Keys>>> {
        match &self.keys {
            None => Ok(None),
            Some(Holder::Keys(keys)) => Ok(Some(Arc::clone(keys))),
            Some(Holder::Member(identity)) => Error::input(format!(
                "keyed tables have no members, and {} came as one. Open them with their keys, or without where they are public.",
                identity.name()
            )),
        }
    }

    fn remote(&self) -> Result<(Arc<Session>, Arc<Vault>)> {
        let none =
            || Error::input("keyed tables are looked up on a server; this client has a folder.");
        self.remote
            .as_ref()
            .map_or_else(none, |(session, vault)| Ok((Arc::clone(session), Arc::clone(vault))))
    }

    /// Opens a keyed table to look records up in it without showing which. It must be the one that `fingerprint` names, 64
    /// hexadecimal digits from its publisher; without one, the one that was seen there first.
    ///
    /// # Errors
    /// [`Error::Input`] for other digits;
    /// [`Error::TableNotFound`]; [`Error::Mismatch`] for another table; [`Error::Scheme`] for one that other keys sealed.
    pub async fn get_table(
        &self,
        host: &dyn Host,
        name: &str,
        fingerprint: Option<&str>,
    ) -> Result<KeyedTable> {
        let place = KeyedPlace::new(self.remote()?, self.face, name)?;
        KeyedTable::open(host, place, self.master()?, fingerprint).await
    }

    /// Every keyed table that the token may see.
    ///
    /// # Errors
    /// [`Error::Server`], [`Error::Authentication`].
    pub async fn list_tables(&self, host: &dyn Host) -> Result<Vec<TableRow>> {
        list_tables(host, &self.remote()?.0).await
    }

    /// Stores a keyed table on the server, in the place of one of that name. `progress` of the host counts the bytes.
    ///
    /// # Errors
    /// [`Error::Input`] for bytes that are no table, [`Error::Server`], [`Error::Authentication`], [`Error::Storage`].
    pub async fn put_table(&self, host: &dyn Host, name: &str, file: &[u8]) -> Result<TableRow> {
        KeyedPlace::new(self.remote()?, self.face, name)?.put(host, file).await
    }

    /// Removes a keyed table from the server.
    ///
    /// # Errors
    /// [`Error::TableNotFound`], [`Error::Server`], [`Error::Authentication`].
    pub async fn delete_table(&self, host: &dyn Host, name: &str) -> Result<()> {
        KeyedPlace::new(self.remote()?, self.face, name)?.delete(host).await
    }

    /// Name, rows and bytes of every collection that the token may see.
    ///
    /// # Errors
    /// [`Error::Server`], [`Error::Authentication`].
    pub async fn list_collections(&self, host: &dyn Host) -> Result<Vec<CollectionRow>> {
        self.database.rows(host).await
    }

    /// Deletes a collection and everything in it.
    ///
    /// # Errors
    /// [`Error::CollectionNotFound`].
    pub async fn delete_collection(&self, host: &dyn Host, name: &str) -> Result<()> {
        let noting = Noting::of(host, "drop", name);
        self.database.delete(host, name).await?;
        noting.done(0);
        Ok(())
    }

    /// Copies a collection, as it is in one state, into one of its name that `target` keeps; its rows. Whatever keys either client has,
    /// none is used. The host is told how many bytes are done. Half a copy is taken away again.
    ///
    /// # Errors
    /// [`Error::CollectionNotFound`], [`Error::CollectionExists`] where the target has one of that name, [`Error::Corrupt`] for bytes that
    /// are not what was stored.
    pub async fn copy_to(&self, host: &dyn Host, name: &str, target: &Client) -> Result<u64> {
        let noting = Noting::of(host, "copy", name);
        check_name(name)?;
        let [ours, theirs] = [self, target].map(|one| move || one.lineages(name));
        let rows = copy(host, name, (&*self.database, &ours), (&*target.database, &theirs)).await?;
        noting.done(usize::try_from(rows).unwrap_or(usize::MAX));
        Ok(rows)
    }

    /// What is stored under a name. Whatever keys this client has, none is used; beside whoever writes to it.
    ///
    /// # Errors
    /// [`crate::Error::CollectionNotFound`], [`crate::Error::Corrupt`].
    pub async fn look(&self, host: &dyn Host, name: &str) -> Result<Look> {
        check_name(name)?;
        let listing = self.beside(host, name).await?.listing();
        let segments = listing.segments.values().map(|one| SegmentInfo::of(one)).collect();
        Ok(Look { meta: Arc::clone(&listing.meta), version: listing.version, segments })
    }

    /// Has every stored block of a collection read and checked, as [`Collection::verify`] does, without a key.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] naming what is damaged.
    pub async fn verify(&self, host: &dyn Host, name: &str) -> Result<Verified> {
        check_name(name)?;
        self.beside(host, name).await?.verify(host).await
    }

    /// Drops what was pinned and seen of a collection, to accept one that was restored or made anew on purpose.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub async fn forget(&self, host: &dyn Host, name: &str) -> Result<()> {
        check_name(name)?;
        self.database.forget(host, name).await
    }

    /// Goes on from an older state of a collection, which whoever keeps it put back from a copy. Only its owner can: the state is checked
    /// as ever, but for coming after what was seen here, and another history begins with a commit. Other clients that saw what is lost are
    /// told so, and follow with [`Self::forget`]. If the query key was changed after the copy was made, a new one is; rows of writers that
    /// were taken in or discarded since stay so, as far as this client saw it.
    ///
    /// # Errors
    /// [`Error::RolledBack`] for what is no state of the owner's, [`Error::CollectionNotFound`], [`Error::Input`] where states are not
    /// authenticated, or where nothing was restored.
    pub async fn accept_restore(&self, host: &dyn Host, name: &str) -> Result<Collection> {
        let noting = Noting::of(host, "accept-restore", name);
        check_name(name)?;
        let trust = self.database.trust(host, name).await?;
        let store = self.database.open_anew(host, name, &trust, self.lineages(name)).await?;
        let description =
            Description::read(self.face, &store.listing().meta, name, self.keys.as_ref())?;
        let mut replica = self.replica(host, store, description).await?;
        if let Some(state) = &replica.states.present {
            trust.of_origin(host, &state.record.origin).await?;
        }
        let seen = trust.state();
        if let Some(seen) = seen.as_ref().filter(|seen| replica.states.follows(seen)) {
            return Error::input(format!(
                "nothing of {} was restored: it shows state {}, which was the last one seen here, or one that comes after it. There is \
                 nothing to accept here; a client that is told otherwise accepts it.",
                self.face.quoted(name),
                seen.sequence
            ));
        }
        if let Some(pin) = replica.accept_restore(host, seen.as_ref(), &trust.stated()).await? {
            trust.accept(host, pin).await?;
        }
        drop(replica); // a folder has one writer
        let opened = self.get_collection(host, name, false, None).await?;
        noting.done(0);
        Ok(opened)
    }

    /// As it is stored, to be read beside whoever writes to it.
    async fn beside(&self, host: &dyn Host, name: &str) -> Result<Arc<dyn CollectionStore>> {
        self.database.open_beside(host, name, self.lineages(name)).await
    }

    async fn collection(
        &self,
        host: &dyn Host,
        store: Arc<dyn CollectionStore>,
        description: Description,
    ) -> Result<Collection> {
        Ok(Collection::new(self.replica(host, store, description).await?))
    }

    async fn replica(
        &self,
        host: &dyn Host,
        store: Arc<dyn CollectionStore>,
        description: Description,
    ) -> Result<Replica> {
        let face = self.face;
        let name = description.spec.collection().to_owned();
        let mut description = description;
        for turn in 0.. {
            let opened = Opened {
                face,
                keys: self.keys.clone(),
                store: Arc::clone(&store),
                description,
                fetch: self.fetch,
                queries_per_key: self.queries_per_key,
            };
            let open = async {
                let replica = Replica::open(host, opened).await?;
                replica.pin(host).await?;
                Ok(replica)
            };
            match open.await {
                Err(Error::Conflict(_)) if turn < ATTEMPTS => {}
                Err(Error::Conflict(_)) => break,
                done => return done,
            }
            store.refresh(host).await?; // others changed it while it was read
            let meta = Arc::clone(&store.listing().meta);
            description = Description::read(face, &meta, &name, self.keys.as_ref())?;
        }
        let name = face.quoted(&name);
        Err(Error::Conflict(format!(
            "collection {name} changes faster than it can be opened. Try again."
        )))
    }

    /// What a description says under these keys; nothing if it doesn't open, or under a scheme whose collections keep nothing when their
    /// keys change.
    fn lineages(&self, name: &str) -> Lineages {
        let (face, keys, name) = (self.face, self.keys.clone(), name.to_owned());
        Box::new(move |meta| {
            let description = Description::read(face, meta, &name, keys.as_ref()).ok()?;
            if description.has_key_pair() {
                return None;
            }
            let owner = description.owner(face, keys.as_ref()).ok()?;
            Some(Lineage {
                key_id: description.key_id,
                masks: masks(&owner),
                epoch: description.epoch,
            })
        })
    }
}
