//! Trust on first use: what a server says about a collection is believed if it agrees with what the server said before.
//!
//! Remembered for each server and collection: the public parameters, pinned when they are first seen; the latest state that its owner
//! has authenticated, which all others have to descend from; and a watermark, the latest version with its head. Version and head are
//! the server's own words: they show what it lost, not what it hides.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ciphervec_owner::{IndexSpec, Keys};
use serde::{Deserialize, Serialize};

use crate::belief::fetch_book::FetchBook;
use crate::belief::former;
use crate::belief::pins::Pin;
use crate::belief::quarantine_book::QuarantineBook;
use crate::belief::session_book::SessionBook;
use crate::belief::vault::{Entry, Vault, is_public};
use crate::error::{Error, Result};
use crate::face::Face;
use crate::hex::Hex;
use crate::host::Host;

pub const KEY_ID: &str = "key id";
pub const MASKS: &str = "masks";
/// Followed by the number.
pub const EPOCH: &str = "evaluation keys of epoch ";
/// Whether the server takes query keys of its clients.
pub const SESSIONS: &str = "query keys";
const FORMER: &str = "former key ids";
const FORMAT: u64 = 1;
/// Bytes, more than what is remembered of a collection.
const ROOM: usize = 16 << 10;
/// Versions whose heads are remembered while a client is open.
const HEADS: usize = 256;

pub type Values = BTreeMap<String, String>;

/// What a description says that was opened, so authenticated, under the owner's keys.
pub struct Lineage {
    pub key_id: String,
    /// The hash of the seed of the public masks, which a collection keeps when its keys change.
    pub masks: String,
    pub epoch: u32,
}

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    format: u64,
    server: String,
    collection: String,
    version: u64,
    head: String,
    pins: Values,
    state: Option<Pin>,
    #[serde(default)]
    stated: Vec<String>,
}

#[derive(Default)]
struct Known {
    version: u64,
    head: String,
    pins: Values,
    state: Option<Pin>,
    heads: BTreeMap<u64, String>,
    /// Those in quarantine by the state that was seen last.
    stated: Vec<String>,
    /// The list of consumed segments that was written down last.
    consumed: Vec<u8>,
    /// Where clients with the keys that this one has given look.
    next: Option<(Arc<Vault>, String)>,
}

/// Pins and watermark of one collection.
pub struct Trust {
    face: Face,
    vault: Arc<Vault>,
    server: String,
    collection: String,
    /// Under which server and name it is remembered. A collection without a server is known by its origin, wherever it lies, once its state
    /// was opened.
    address: OnceLock<[String; 2]>,
    /// Whether what is seen from here on is not to be compared with what was seen before, nor written down.
    pub anew: bool,
    known: Mutex<Known>,
}

impl Trust {
    /// With nothing read of what was remembered.
    pub fn new(face: Face, vault: Arc<Vault>, server: &str, collection: &str) -> Self {
        let address = [server, collection].map(str::to_owned);
        let known = OnceLock::from(address);
        Trust { address: known, ..Self::of_folder(face, vault, server, collection) }
    }

    /// Of a collection that lies in a folder, or in memory.
    pub fn of_folder(face: Face, vault: Arc<Vault>, place: &str, collection: &str) -> Self {
        let [server, collection] = [place, collection].map(str::to_owned);
        let (address, known) = (OnceLock::new(), Mutex::default());
        Trust { face, vault, server, collection, address, anew: false, known }
    }

    /// Takes in what was seen of the collection of this origin, where that is what it is known by.
    pub async fn of_origin(&self, host: &dyn Host, origin: &[u8; 16]) -> Result<()> {
        if self.address.set([String::new(), Hex(*origin).to_string()]).is_err() {
            return Ok(());
        }
        if self.anew {
            self.known().stated = self.read(host).await?.unwrap_or_default().stated;
        }
        self.reload(host).await
    }

    /// What was remembered. An error for what was damaged, and for what is under other keys.
    pub async fn open(
        face: Face,
        host: &dyn Host,
        vault: Arc<Vault>,
        server: &str,
        name: &str,
    ) -> Result<Self> {
        let trust = Self::new(face, vault, server, name);
        trust.reload(host).await?;
        Ok(trust)
    }

    /// To look at what a server shows without comparing it with what was seen before, but for what the owner's state had in quarantine.
    pub fn without_past(&self) -> Self {
        let known = Known { stated: self.stated(), ..Known::default() };
        let vault = Arc::clone(&self.vault);
        let trust = Self::of_folder(self.face, vault, &self.server, &self.collection);
        let address = self.address.clone();
        Trust { anew: true, known: Mutex::new(known), address, ..trust }
    }

    /// Begins anew with this state, in the place of whatever was seen before.
    pub async fn accept(&self, host: &dyn Host, pin: Pin) -> Result<()> {
        let known = {
            let known = &mut *self.known();
            let state = Some(pin.after(known.state.as_ref()));
            let (stated, next) = (core::mem::take(&mut known.stated), known.next.take());
            *known = Known { state, stated, next, ..Known::default() };
            self.stored(known)
        };
        let Some(entry) = self.entry() else { return Ok(()) };
        let _lock = host.lock(&entry).await?;
        self.vault.put(host, &self.place(host, entry).await?, &known).await
    }

    /// Writes what was seen, and what is seen from here on, down once more, for whoever opens the collection with other keys.
    pub async fn hand_over(&self, host: &dyn Host, keys: &Keys) -> Result<()> {
        let Some([server, name]) = self.address.get() else { return Ok(()) };
        let entry = entry_of(&[server, name, &keys.key_id().to_string()]);
        self.known().next = Some((Arc::new(Vault::new(keys)?), entry));
        self.write_next(host).await
    }

    async fn write_next(&self, host: &dyn Host) -> Result<()> {
        let Some((vault, entry)) = self.known().next.clone() else { return Ok(()) };
        let _lock = host.lock(&entry).await?;
        let stated = self.stated();
        if let Some(Entry::Data(data)) = vault.get(host, &entry).await? {
            self.merge(self.parse(&data)?)?;
        }
        let data = self.stored_now(Some(stated));
        vault.put(host, &entry, &data).await
    }

    /// Forgets what was remembered, whatever it is, of a collection that is gone.
    pub async fn drop_all(
        host: &dyn Host,
        vault: &Arc<Vault>,
        server: &str,
        collection: &str,
    ) -> Result<()> {
        host.delete(&entry_of(&[server, collection, &vault.key_id()])).await?;
        host.delete(&former::of_server(server, collection)).await?;
        host.delete(&entry_of(&[server, collection])).await
    }

    /// The same, but for the quarantine: a server that is trusted anew must not try again what failed.
    pub async fn forget(
        host: &dyn Host,
        vault: &Arc<Vault>,
        server: &str,
        collection: &str,
    ) -> Result<()> {
        let trust = Self::new(Face::Rust, Arc::clone(vault), server, collection);
        let stated = trust.read(host).await.ok().flatten().map(|stored| stored.stated);
        Self::drop_all(host, vault, server, collection).await?;
        let Some(stated) = stated.filter(|stated| !stated.is_empty()) else { return Ok(()) };
        let (entry, known) =
            (entry_of(&[server, collection]), Known { stated, ..Known::default() });
        vault.put(host, &entry, &trust.stored(&known)).await
    }

    /// Where the segments are written down that failed a check.
    pub fn quarantine(&self, spec: &IndexSpec) -> QuarantineBook {
        QuarantineBook::new(Arc::clone(&self.vault), spec)
    }

    /// What is known of its private fetches.
    pub fn fetches(&self, spec: &IndexSpec) -> FetchBook {
        FetchBook::new(Arc::clone(&self.vault), spec)
    }

    /// Which session queries are asked under.
    pub fn sessions(&self, spec: &IndexSpec) -> SessionBook {
        SessionBook::new(Arc::clone(&self.vault), spec)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The latest version seen.
    pub fn version(&self) -> u64 {
        self.known().version
    }

    /// The latest authenticated state seen.
    pub fn state(&self) -> Option<Pin> {
        self.known().state.clone()
    }

    /// A pinned value.
    pub fn pinned(&self, name: &str) -> Option<String> {
        self.known().pins.get(name).cloned()
    }

    /// Those in quarantine by the state that was seen last.
    pub fn stated(&self) -> Vec<String> {
        self.known().stated.clone()
    }

    /// The owner's state names these by now.
    pub async fn see_stated(&self, host: &dyn Host, mut segments: Vec<String>) -> Result<()> {
        segments.sort_unstable();
        if self.stated() == segments {
            return Ok(());
        }
        self.write_with(host, Some(segments)).await
    }

    /// Takes in what other clients of this user have seen.
    pub async fn reload(&self, host: &dyn Host) -> Result<()> {
        if self.anew {
            return Ok(());
        }
        match self.read(host).await? {
            Some(stored) => self.merge(stored),
            None => Ok(()),
        }
    }

    /// The consumed segments of a collection that were seen here, for when a copy from before them is put back: nothing else forgets
    /// them.
    pub async fn consumed(&self, host: &dyn Host, origin: &[u8; 16]) -> Result<Vec<u8>> {
        match self.vault.get(host, &self.consumed_entry(origin)).await? {
            Some(Entry::Data(list)) => {
                self.known().consumed.clone_from(&list);
                Ok(list)
            }
            None if self.face == Face::Python => {
                let former = host.get(&former::of_consumed(&Hex(*origin).to_string())).await?;
                Ok(former.unwrap_or_default())
            }
            Some(Entry::OtherKeys(_)) | None => Ok(Vec::new()),
        }
    }

    /// Remembers this list of consumed segments.
    pub async fn keep_consumed(
        &self,
        host: &dyn Host,
        origin: &[u8; 16],
        list: &[u8],
    ) -> Result<()> {
        if list.is_empty() || self.known().consumed == list {
            return Ok(());
        }
        self.vault.put(host, &self.consumed_entry(origin), list).await?;
        self.known().consumed = list.to_vec();
        Ok(())
    }

    /// Finds out, before a change that can't be taken back, whether what it makes could be written down.
    pub async fn prepare(&self, host: &dyn Host) -> Result<()> {
        let Some(entry) = self.entry() else { return Ok(()) };
        let draft = format!("{entry}/draft");
        let _lock = host.lock(&entry).await?;
        self.vault.put(host, &draft, &[0; ROOM]).await?;
        host.delete(&draft).await
    }

    /// `what` is done, and cannot be taken back where what was seen of it can't be written down: a warning says so in the place of an
    /// error of the storage's.
    pub async fn afterwards(
        host: &dyn Host,
        what: &str,
        step: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        match step.await {
            Err(Error::Storage(says)) => {
                host.warn(&format!(
                    "{what} is made. What this client has seen of it could not be written down, so that another one would not notice if it \
                     were taken back: {says} This client goes on, and writes it down with the next change."
                ));
                Ok(())
            }
            done => done,
        }
    }

    /// The server shows this version. `since` is the latest one known when it was asked: answers may overtake each other. With `later`
    /// it is written down with what comes next.
    pub async fn see(
        &self,
        host: &dyn Host,
        version: u64,
        head: &str,
        since: u64,
        later: bool,
    ) -> Result<()> {
        let newer = {
            let known = &mut *self.known();
            let (server, name, next) = (&self.server, self.name(), self.next_step());
            if version < since.min(known.version) {
                return Err(Error::RolledBack(format!(
                    "{server} shows version {version} (head {}) of {name}, and has shown version {} (head {}) before: commits were lost or \
                     rolled back. {next}",
                    short(head),
                    known.version,
                    short(&known.head)
                )));
            }
            let before = known.heads.get(&version);
            if let Some(before) = before.filter(|before| *before != head) {
                return Err(Error::RolledBack(format!(
                    "{server} shows version {version} of {name} with head {}, and has shown it with head {} before: these are two \
                     histories. {next}",
                    short(head),
                    short(before)
                )));
            }
            if version == known.version && before.is_some() {
                return Ok(());
            }
            known.remember(version, head);
            version > known.version && {
                (known.version, known.head) = (version, head.to_owned());
                true
            }
        };
        if newer && !later { self.write(host).await } else { Ok(()) }
    }

    /// The server shows this state, which was found to be right, or has committed it.
    pub async fn see_state(&self, host: &dyn Host, pin: Pin) -> Result<()> {
        {
            let known = &mut *self.known();
            let pin = Some(pin.after(known.state.as_ref()));
            if pin == known.state {
                return Ok(());
            }
            known.state = pin;
        }
        self.write(host).await
    }

    /// Holds the server to these values from now on.
    pub async fn pin(&self, host: &dyn Host, values: &[(String, String)]) -> Result<()> {
        {
            let known = &mut *self.known();
            for (what, value) in values {
                if let Some(pinned) = known.pins.get(what).filter(|pinned| *pinned != value) {
                    let (server, name, next) = (&self.server, self.name(), self.next_step());
                    return Err(Error::Mismatch(format!(
                        "{server} shows {what} {} of {name}; {} was pinned when it was first used here. {next}",
                        short(value),
                        short(pinned)
                    )));
                }
            }
            let before = known.pins.len();
            known.pins.extend(values.iter().cloned());
            if known.pins.len() == before {
                return Ok(());
            }
        }
        self.write(host).await
    }

    /// Holds the server to other values from now on: this client has changed them itself.
    pub async fn repin(&self, host: &dyn Host, values: &[(String, String)]) -> Result<()> {
        {
            let pins = &mut self.known().pins;
            let now = values.iter().find(|(name, _)| name == KEY_ID).map(|(_, id)| id);
            let before =
                pins.get(KEY_ID).filter(|before| now.is_some_and(|now| now != *before)).cloned();
            if let Some(before) = before {
                let former = former(pins).chain([before.as_str()]).collect::<Vec<_>>().join(" ");
                pins.insert(FORMER.to_owned(), former);
            }
            pins.extend(values.iter().cloned());
        }
        self.write(host).await
    }

    /// The server shows a description under the keys `shown`, and others were pinned. Another client of the owner may have changed
    /// them: then the pin moves on, and a warning says so.
    ///
    /// `lineage` is what the description says when it is opened under the keys given, which the user vouches for by passing them. That
    /// alone could be any collection of theirs. But the settings of one whose keys have changed name the seed of its public masks, which
    /// a change of keys hands on and which is derived from the keys that it began with: a server can't make one up, nor take it from a
    /// collection that was made under the new keys. What a server could still do is show an old description, under a number of its
    /// choice: keys that were left are not gone back to, and the epoch has to have grown, as it does with every change of keys.
    pub async fn follow(
        &self,
        host: &dyn Host,
        shown: &str,
        lineage: Option<&Lineage>,
    ) -> Result<()> {
        let (server, name) = (&self.server, self.name());
        let (pinned, proven) = {
            let pins = &self.known().pins;
            let epochs = pins
                .keys()
                .filter_map(|name| name.strip_prefix(EPOCH))
                .map(|epoch| epoch.parse().unwrap_or(u32::MAX));
            let latest = epochs.max();
            let proven = lineage.is_some_and(|lineage| {
                lineage.key_id == shown
                    && pins.get(MASKS) == Some(&lineage.masks)
                    && !former(pins).any(|left| left == shown)
                    && latest.is_none_or(|latest| lineage.epoch > latest)
            });
            (pins.get(KEY_ID).cloned().unwrap_or_default(), proven)
        };
        if !proven {
            return Err(Error::Mismatch(format!(
                "{server} shows {KEY_ID} {shown} of {name}; {pinned} was pinned when it was last used here. If its owner has changed the \
                 keys from elsewhere, open it with the new ones. If not, do not go on: {}",
                self.next_step()
            )));
        }
        self.repin(host, &[(KEY_ID.to_owned(), shown.to_owned())]).await?;
        host.warn(&format!(
            "the keys of {name} on {server} were changed by another client of its owner, from {pinned} to {shown}, which were given here. \
             The pin has moved on."
        ));
        Ok(())
    }

    async fn read(&self, host: &dyn Host) -> Result<Option<Stored>> {
        let (server, name) = (&self.server, self.name());
        let Some(entry) = self.entry() else { return Ok(None) };
        let found = self.vault.get(host, &entry).await?;
        let found = match found {
            Some(Entry::Data(_)) => found,
            // The keys have changed, and what was seen until then was handed over.
            found => self.vault.get(host, &self.handed_over()).await?.or(found),
        };
        match found {
            None => self.former(host).await,
            // Who has no keys can't tell what others saw, and looks as a stranger does.
            Some(Entry::OtherKeys(_)) if self.vault.is_public() => Ok(None),
            // A client without keys was here first.
            Some(Entry::OtherKeys(keys)) if is_public(&keys) => {
                match Vault::new(&Keys::public())?.get(host, &entry).await? {
                    Some(Entry::Data(data)) => self.parse(&data).map(Some),
                    _ => Ok(None),
                }
            }
            Some(Entry::OtherKeys(keys)) => Err(Error::Mismatch(format!(
                "{name} on {server} was last used here with the keys {keys}, which what was seen of it is encrypted under. If its owner has \
                 changed the keys, confirm that the server shows the right collection with client.forget({name}); else open it with those \
                 keys."
            ))),
            Some(Entry::Data(data)) => self.parse(&data).map(Some),
        }
    }

    /// What a Python client of an earlier release remembered. Only its owners have such things.
    async fn former(&self, host: &dyn Host) -> Result<Option<Stored>> {
        let Some([server, name]) = self.address.get().filter(|_| self.face == Face::Python) else {
            return Ok(None);
        };
        let in_folder = server.is_empty();
        let place =
            if in_folder { former::of_origin(name) } else { former::of_server(server, name) };
        let Some(data) = host.get(&place).await? else { return Ok(None) };
        let stored = if in_folder {
            former::pin_of(&data, name).map(|pin| Stored { state: Some(pin), ..Stored::default() })
        } else {
            former::trust_of(&data, server, name).map(|found| Stored {
                version: found.version,
                head: found.head,
                pins: found.pins,
                state: found.state,
                ..Stored::default()
            })
        };
        match stored {
            Some(stored) => Ok(Some(stored)),
            None => Error::corrupt(format!(
                "what an earlier release remembered of {} is not what it wrote. Make sure that {} shows the right version, and then delete \
                 it, under servers or collections in the state folder.",
                self.name(),
                self.server
            )),
        }
    }

    fn parse(&self, data: &[u8]) -> Result<Stored> {
        let (server, name) = (&self.server, self.name());
        let stored = serde_json::from_slice::<Stored>(data).ok().filter(|stored| {
            stored.format == FORMAT
                && self.address.get() == Some(&[stored.server.clone(), stored.collection.clone()])
        });
        stored.ok_or_else(|| {
            Error::Corrupt(format!(
                "what was remembered of {name} is not what ciphervec writes. client.forget({name}) trusts {server} on first use again, \
                 after making sure that it shows the right version."
            ))
        })
    }

    /// What another client has written in the meantime counts as seen here.
    fn merge(&self, stored: Stored) -> Result<()> {
        let Stored { version, head, pins, state, stated, .. } = stored;
        let mine = &mut *self.known();
        if let Some(known) = mine.heads.get(&version).filter(|known| **known != head) {
            return Err(Error::RolledBack(format!(
                "{} has shown version {version} of {} with head {} here and with head {} to {}: these are two histories. {}",
                self.server,
                self.name(),
                short(known),
                short(&head),
                self.face.elsewhere(),
                self.next_step()
            )));
        }
        // A client that still holds the pins from before a change of keys must not put them back.
        if former(&pins).count() > former(&mine.pins).count() {
            mine.pins.extend(pins);
        } else {
            let before = core::mem::replace(&mut mine.pins, pins);
            mine.pins.extend(before);
        }
        mine.state = Pin::latest(mine.state.take(), state);
        mine.stated = stated;
        if !head.is_empty() {
            mine.remember(version, &head);
        }
        if version > mine.version {
            (mine.version, mine.head) = (version, head);
        }
        Ok(())
    }

    async fn write(&self, host: &dyn Host) -> Result<()> {
        self.write_with(host, None).await
    }

    /// Only who has seen a state says what it has in quarantine.
    async fn write_with(&self, host: &dyn Host, stated: Option<Vec<String>>) -> Result<()> {
        if self.anew {
            stated.into_iter().for_each(|stated| self.known().stated = stated);
            return Ok(());
        }
        let Some(entry) = self.entry() else {
            self.stored_now(stated);
            return Ok(());
        };
        {
            let _lock = host.lock(&entry).await?;
            self.reload(host).await?;
            let data = self.stored_now(stated);
            self.vault.put(host, &self.place(host, entry).await?, &data).await?;
        }
        self.write_next(host).await
    }

    fn stored_now(&self, stated: Option<Vec<String>>) -> Vec<u8> {
        let known = &mut *self.known();
        if let Some(stated) = stated {
            known.stated = stated;
        }
        self.stored(known)
    }

    fn stored(&self, known: &Known) -> Vec<u8> {
        let [server, collection] = self.address.get().cloned().unwrap_or_default();
        self.face.json(&Stored {
            format: FORMAT,
            server,
            collection,
            version: known.version,
            head: known.head.clone(),
            pins: known.pins.clone(),
            state: known.state.clone(),
            stated: known.stated.clone(),
        })
    }

    /// By keys as well: under other ones it could not be read.
    fn consumed_entry(&self, origin: &[u8; 16]) -> String {
        let of = format!("{}\n{}", Hex(*origin), self.vault.key_id());
        format!("consumed/{}", blake3::hash(of.as_bytes()).to_hex())
    }

    fn entry(&self) -> Option<String> {
        self.address.get().map(|[server, collection]| entry_of(&[server, collection]))
    }

    fn handed_over(&self) -> String {
        let [server, collection] = self.address.get().cloned().unwrap_or_default();
        entry_of(&[&server, &collection, &self.vault.key_id()])
    }

    /// Where it is written down: beside what clients with other keys have seen.
    async fn place(&self, host: &dyn Host, entry: String) -> Result<String> {
        Ok(match self.vault.get(host, &entry).await? {
            Some(Entry::OtherKeys(_)) => self.handed_over(),
            _ => entry,
        })
    }

    fn name(&self) -> String {
        self.face.quoted(&self.collection)
    }

    fn next_step(&self) -> String {
        let (accepts, name) = (self.face.accepts(&self.collection), self.name());
        format!(
            "Ask the server's operator what happened. If the collection was restored on purpose, its owner confirms that with {accepts}; if \
             it was made anew, accept that with client.forget({name})."
        )
    }
}

/// Where what is seen of a collection lies, by server and name, and of one whose keys have changed by those too.
fn entry_of(of: &[&str]) -> String {
    format!("trust/{}", blake3::hash(of.join("\n").as_bytes()).to_hex())
}

impl Known {
    fn remember(&mut self, version: u64, head: &str) {
        self.heads.insert(version, head.to_owned());
        while self.heads.len() > HEADS {
            self.heads.pop_first();
        }
    }
}

/// Ids of the keys that were pinned once, oldest first.
fn former(pins: &Values) -> impl Iterator<Item = &str> {
    pins.get(FORMER).map_or("", String::as_str).split_whitespace()
}

fn short(value: &str) -> String {
    match value.char_indices().nth(16) {
        Some((end, _)) if value.chars().count() > 24 => format!("{}…", &value[..end]),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Fake;
    use ciphervec_owner::Keys;
    use futures_lite::future::block_on;

    fn opened_with(host: &Fake, master: [u8; 32]) -> Result<Trust> {
        let vault = Arc::new(Vault::new(&Keys::from_master(master))?);
        block_on(Trust::open(Face::Rust, host, vault, "https://x", "docs"))
    }

    fn opened(host: &Fake) -> Trust {
        opened_with(host, [7; 32]).unwrap()
    }

    fn values(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_python_clients_saw_of_a_folder_counts_until_something_was_seen_since() {
        let (host, origin) = (Fake::default(), [0x12; 16]);
        let vault = Arc::new(Vault::new(&Keys::from_master([7; 32])).unwrap());
        let known = |face| {
            let trust = Trust::of_folder(face, Arc::clone(&vault), "db", "docs");
            block_on(trust.of_origin(&host, &origin)).map(|()| trust)
        };
        let hex = "12".repeat(16);
        let text = format!(
            r#"{{"format": 1, "origin": "{hex}", "lineage": "aa", "sequence": 9, "name": "bb", "epoch": 2, "left": ["cc"]}}"#
        );
        let (of_origin, of_list) = (former::of_origin(&hex), former::of_consumed(&hex));
        block_on(host.put(&of_origin, text.as_bytes())).unwrap();
        block_on(host.put(&of_list, b"list")).unwrap();
        assert_eq!(known(Face::Rust).unwrap().state(), None);
        let trust = known(Face::Python).unwrap();
        let before = trust.state().unwrap();
        assert_eq!((before.sequence, &*before.left), (9, &["cc".to_owned()][..]));
        assert_eq!(block_on(trust.consumed(&host, &origin)).unwrap(), b"list");
        let now = Pin { sequence: 10, ..before };
        block_on(trust.see_state(&host, now.clone())).unwrap();
        block_on(trust.keep_consumed(&host, &origin, b"longer list")).unwrap();
        let trust = known(Face::Python).unwrap();
        assert_eq!(trust.state(), Some(now));
        assert_eq!(block_on(trust.consumed(&host, &origin)).unwrap(), b"longer list");
        // Of another collection, or damaged, it passes for nothing.
        host.kept.borrow_mut().retain(|name, _| name.starts_with("former"));
        for other in [
            text.replace("1212", "1313"),
            text.replace("\"format\": 1", "\"format\": 7"),
            "{".to_owned(),
        ] {
            block_on(host.put(&of_origin, other.as_bytes())).unwrap();
            assert!(matches!(known(Face::Python), Err(Error::Corrupt(_))), "{other}");
        }
    }

    #[test]
    fn who_has_no_keys_looks_as_a_stranger_and_is_in_nobodys_way() {
        let host = Fake::default();
        let keyless = || {
            let vault = Arc::new(Vault::new(&Keys::public()).unwrap());
            block_on(Trust::open(Face::Rust, &host, vault, "https://x", "docs"))
        };
        let one = values(&[(KEY_ID, "1")]);
        block_on(keyless().unwrap().pin(&host, &one)).unwrap();
        // What was seen without keys holds for whoever has some.
        let owner = opened(&host);
        assert_eq!(owner.pinned(KEY_ID).as_deref(), Some("1"));
        block_on(owner.pin(&host, &values(&[(MASKS, "2")]))).unwrap();
        assert_eq!(opened(&host).pinned(MASKS).as_deref(), Some("2"));
        assert_eq!(keyless().unwrap().pinned(MASKS), None);
        block_on(Trust::forget(&host, &owner.vault, "https://x", "docs")).unwrap();
        block_on(opened(&host).pin(&host, &one)).unwrap();
        // And the other way round.
        assert_eq!(keyless().unwrap().pinned(KEY_ID), None);
        block_on(keyless().unwrap().pin(&host, &values(&[(KEY_ID, "3")]))).unwrap();
        assert_eq!(keyless().unwrap().pinned(KEY_ID).as_deref(), Some("3"));
        assert_eq!(opened(&host).pinned(KEY_ID).as_deref(), Some("1"));
        assert!(opened_with(&host, [8; 32]).is_err());
    }

    #[test]
    fn a_server_that_goes_back_is_found_out_in_a_later_session_too() {
        let host = Fake::default();
        let first = opened(&host);
        block_on(first.see(&host, 1, "a", 0, false)).unwrap();
        block_on(first.see(&host, 3, "b", 1, false)).unwrap();
        for trust in [&first, &opened(&host)] {
            assert!(matches!(
                block_on(trust.see(&host, 2, "c", 3, false)),
                Err(Error::RolledBack(_))
            ));
            let other = block_on(trust.see(&host, 3, "c", 3, false)).unwrap_err();
            assert!(other.to_string().contains("two histories"), "{other}");
        }
        // Answers may overtake each other.
        block_on(first.see(&host, 2, "c", 1, false)).unwrap();
        block_on(first.see(&host, 4, "c", 3, false)).unwrap();
        assert_eq!(first.version(), 4);
        assert!(matches!(opened_with(&host, [8; 32]), Err(Error::Mismatch(_))), "under other keys");
    }

    #[test]
    fn two_clients_of_one_user_share_what_they_saw() {
        let (here, there) = {
            let here = Fake::default();
            let there = Fake::beside(&here);
            (here, there)
        };
        let (one, two) = (opened(&here), opened(&there));
        block_on(one.see(&here, 5, "a", 0, false)).unwrap();
        block_on(two.see(&there, 2, "b", 0, false)).unwrap();
        assert_eq!((one.version(), two.version()), (5, 5));
        assert!(block_on(two.see(&there, 4, "b", 5, false)).is_err());
        block_on(one.see(&here, 8, "a", 5, false)).unwrap();
        let other = block_on(two.see(&there, 8, "b", 5, false)).unwrap_err();
        assert!(other.to_string().contains("two histories"), "{other}");
        block_on(one.pin(&here, &values(&[(KEY_ID, "k1")]))).unwrap();
        let two = opened(&there);
        block_on(one.repin(&here, &values(&[(KEY_ID, "k2")]))).unwrap();
        block_on(two.see(&there, 9, "c", 8, false)).unwrap();
        assert_eq!(two.pinned(KEY_ID).as_deref(), Some("k2"), "old pins are not put back");
    }

    #[test]
    fn parameters_are_pinned_and_keys_followed_where_the_masks_are_handed_on_and_never_back() {
        let host = Fake::default();
        let trust = opened(&host);
        let pins =
            values(&[("spec", "one"), (KEY_ID, "old"), (MASKS, "m"), (&format!("{EPOCH}2"), "e")]);
        block_on(trust.pin(&host, &pins)).unwrap();
        assert!(matches!(
            block_on(opened(&host).pin(&host, &values(&[("spec", "two")]))),
            Err(Error::Mismatch(_))
        ));
        let lineage = |key: &str, masks: &str, epoch| Lineage {
            key_id: key.to_owned(),
            masks: masks.to_owned(),
            epoch,
        };
        for wrong in [
            None,
            Some(lineage("new", "x", 3)),
            Some(lineage("new", "m", 2)),
            Some(lineage("other", "m", 3)),
        ] {
            let refused = block_on(trust.follow(&host, "new", wrong.as_ref()));
            assert!(matches!(refused, Err(Error::Mismatch(_))));
            assert_eq!(trust.pinned(KEY_ID).as_deref(), Some("old"));
        }
        block_on(trust.follow(&host, "new", Some(&lineage("new", "m", 3)))).unwrap();
        assert_eq!((trust.pinned(KEY_ID).as_deref(), host.warned.borrow().len()), (Some("new"), 1));
        let back = block_on(trust.follow(&host, "old", Some(&lineage("old", "m", 9))));
        assert!(matches!(back, Err(Error::Mismatch(_))));
    }

    #[test]
    fn only_who_saw_a_state_says_what_it_has_in_quarantine() {
        let here = Fake::default();
        let there = Fake::beside(&here);
        let (one, stale) = (opened(&here), opened(&there));
        block_on(one.see_stated(&here, vec!["aa".to_owned()])).unwrap();
        block_on(stale.see(&there, 3, "a", 0, false)).unwrap();
        assert_eq!(opened(&here).stated(), ["aa"]);
        block_on(one.see_stated(&here, Vec::new())).unwrap();
        assert!(opened(&here).stated().is_empty());
    }

    #[test]
    fn what_is_consumed_under_other_keys_leaves_the_list_of_these() {
        let host = Fake::default();
        let origin = [5; 16];
        block_on(opened(&host).keep_consumed(&host, &origin, b"old")).unwrap();
        let other = Arc::new(Vault::new(&Keys::from_master([8; 32])).unwrap());
        let other = Trust::new(Face::Rust, other, "https://x", "docs");
        block_on(other.keep_consumed(&host, &origin, b"new")).unwrap();
        assert_eq!(block_on(opened(&host).consumed(&host, &origin)).unwrap(), b"old");
    }

    #[test]
    fn no_byte_of_what_is_remembered_can_be_changed_and_nothing_is_believed_elsewhere() {
        let host = Fake::default();
        block_on(opened(&host).see(&host, 3, "a", 0, false)).unwrap();
        let (name, stored) = host
            .kept
            .borrow()
            .iter()
            .next()
            .map(|(name, (_, data))| (name.clone(), data.clone()))
            .unwrap();
        assert!(!stored.windows(4).any(|part| part == b"docs"));
        for at in 0..stored.len() {
            let mut changed = stored.clone();
            changed[at] ^= 1;
            block_on(host.put(&name, &changed)).unwrap();
            let refused = opened_with(&host, [7; 32]);
            assert!(
                matches!(refused, Err(Error::Corrupt(_) | Error::Version(_) | Error::Mismatch(_))),
                "byte {at}"
            );
        }
        let vault = Arc::new(Vault::new(&Keys::from_master([7; 32])).unwrap());
        let other = Trust::new(Face::Rust, Arc::clone(&vault), "https://x", "letters");
        block_on(host.put(&other.entry().unwrap(), &stored)).unwrap();
        assert!(
            matches!(block_on(other.reload(&host)), Err(Error::Corrupt(_))),
            "of another collection"
        );
    }
}
