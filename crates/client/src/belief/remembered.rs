//! What is remembered of a collection between clients of one user: sealed in the host's storage, and merged with what others wrote there
//! meanwhile.
//!
//! An entry `trust/` is named by BLAKE3 of URL, newline and collection, of the origin for a folder, with a newline and the id of
//! the key it is sealed under behind it for clients of a member. It is JSON of format 1: `server`; `collection`; `version` and
//! `head` (the watermark); `pins`, an object of strings: `spec`, `key id`, `evaluation keys of epoch 0` and so on, `key pair`,
//! the last two as BLAKE3 of the bytes, `query keys`, which is `taken` once the server has taken a session's; `state`:
//! `origin`, `lineage`, `sequence`, `name` and `epoch` of the latest state seen, `left`, the lineages followed before, and
//! `members`: `changes` of the list and the hash of them, `head`; `stated`, the segments in quarantine by that state.

use std::future::Future;
use std::sync::Arc;

use ciphervec_owner::Keys;
use serde::{Deserialize, Serialize};

use crate::belief::former;
use crate::belief::pins::Pin;
use crate::belief::trust::{Known, Trust, Values, former_keys, short};
use crate::belief::vault::{Entry, Vault, is_public};
use crate::error::{Error, Result};
use crate::face::Face;
use crate::hex::Hex;
use crate::host::Host;
use crate::json;

const FORMAT: u64 = 1;
/// Bytes, more than what is remembered of a collection.
const ROOM: usize = 16 << 10;

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

impl Trust {
    /// Takes in what was seen of the collection of this origin, where that is what it is known by.
    pub async fn of_origin(&self, host: &dyn Host, origin: &[u8; 16]) -> Result<()> {
        if self.address.get().is_none() {
            self.expect_home(host, Some(origin)).await?;
        }
        if self.address.set([String::new(), Hex(*origin).to_string()]).is_err() {
            return Ok(());
        }
        if self.anew {
            self.known().stated = self.read(host).await?.unwrap_or_default().stated;
        }
        self.reload(host).await
    }

    /// Begins anew with this state, in the place of whatever was seen before.
    pub async fn accept(&self, host: &dyn Host, pin: Pin) -> Result<()> {
        self.keep_home(host, &pin).await?;
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
    pub async fn hand_over(&self, host: &dyn Host, to: Vault) -> Result<()> {
        let Some([server, name]) = self.address.get() else { return Ok(()) };
        let entry = entry_of(&[server, name, &to.key_id()]);
        self.known().next = Some((Arc::new(to), entry));
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
        let stored = json::read::<Stored>(data).ok().filter(|stored| {
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
        if former_keys(&pins).count() > former_keys(&mine.pins).count() {
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

    pub(super) async fn write(&self, host: &dyn Host) -> Result<()> {
        self.write_with(host, None).await
    }

    /// Only who has seen a state says what it has in quarantine.
    pub(super) async fn write_with(
        &self,
        host: &dyn Host,
        stated: Option<Vec<String>>,
    ) -> Result<()> {
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
        self.address.get().map(|[server, collection]| match self.vault.is_personal() {
            // Members of one collection who share a storage have nothing to do with one another.
            true => self.handed_over(),
            false => entry_of(&[server, collection]),
        })
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
}

/// Where what is seen of a collection lies, by server and name, and of one whose keys have changed by those too.
fn entry_of(of: &[&str]) -> String {
    format!("trust/{}", blake3::hash(of.join("\n").as_bytes()).to_hex())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::belief::trust::tests::{opened, opened_with, values};
    use crate::belief::trust::{KEY_ID, MASKS};
    use crate::host::fake::Fake;
    use futures_lite::future::block_on;

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
