//! Trust on first use: what a server says about a collection is believed if it agrees with what the server said before.
//!
//! Remembered for each server and collection: the public parameters, pinned when they are first seen; the latest state that its owner
//! has authenticated, which all others have to descend from; and a watermark, the latest version with its head. Version and head are
//! the server's own words: they show what it lost, not what it hides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ciphervec_owner::IndexSpec;

use crate::belief::fetch_book::FetchBook;
use crate::belief::pins::Pin;
use crate::belief::quarantine_book::QuarantineBook;
use crate::belief::session_book::SessionBook;
use crate::belief::vault::Vault;
use crate::error::{Error, Result};
use crate::face::Face;
use crate::host::Host;
use crate::sorting::sort_by;

pub const KEY_ID: &str = "key id";
pub const MASKS: &str = "masks";
/// Followed by the number.
pub const EPOCH: &str = "evaluation keys of epoch ";
/// Whether the server takes query keys of its clients.
pub const SESSIONS: &str = "query keys";
const FORMER: &str = "former key ids";
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

#[derive(Default)]
pub(super) struct Known {
    pub(super) version: u64,
    pub(super) head: String,
    pub(super) pins: Values,
    pub(super) state: Option<Pin>,
    pub(super) heads: BTreeMap<u64, String>,
    /// Those in quarantine by the state that was seen last.
    pub(super) stated: Vec<String>,
    /// The list of consumed segments that was written down last.
    pub(super) consumed: Vec<u8>,
    /// The origin of the one that was seen where it lies.
    pub(super) home: Option<String>,
    /// Where clients with the keys that this one has given look.
    pub(super) next: Option<(Arc<Vault>, String)>,
}

/// Pins and watermark of one collection.
pub struct Trust {
    pub(super) face: Face,
    pub(super) vault: Arc<Vault>,
    pub(super) server: String,
    pub(super) collection: String,
    /// Under which server and name it is remembered. A collection without a server is known by its origin, wherever it lies, once its state
    /// was opened.
    pub(super) address: OnceLock<[String; 2]>,
    /// Where one lies that is known by its origin.
    pub(super) home: Option<String>,
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
        Trust { face, vault, server, collection, address, home: None, anew: false, known }
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
        let home = self.home.clone();
        Trust { anew: true, known: Mutex::new(known), address, home, ..trust }
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

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a person remembers it, to whom the list of members says which keys it has.
    pub fn is_personal(&self) -> bool {
        self.vault.is_personal()
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
        sort_by(&mut segments, Ord::cmp);
        if self.stated() == segments {
            return Ok(());
        }
        self.write_with(host, Some(segments)).await
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
        self.keep_home(host, &pin).await?;
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
                let former =
                    former_keys(pins).chain([before.as_str()]).collect::<Vec<_>>().join(" ");
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
                    && !former_keys(pins).any(|left| left == shown)
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

    pub(super) fn name(&self) -> String {
        self.face.quoted(&self.collection)
    }

    pub(super) fn next_step(&self) -> String {
        let (accepts, name) = (self.face.accepts(&self.collection), self.name());
        format!(
            "Ask the server's operator what happened. If the collection was restored on purpose, its owner confirms that with {accepts}; if \
             it was made anew, accept that with client.forget({name})."
        )
    }
}

impl Known {
    pub(super) fn remember(&mut self, version: u64, head: &str) {
        self.heads.insert(version, head.to_owned());
        while self.heads.len() > HEADS {
            self.heads.pop_first();
        }
    }
}

/// Ids of the keys that were pinned once, oldest first.
pub(super) fn former_keys(pins: &Values) -> impl Iterator<Item = &str> {
    pins.get(FORMER).map_or("", String::as_str).split_whitespace()
}

pub(super) fn short(value: &str) -> String {
    match value.char_indices().nth(16) {
        Some((end, _)) if value.chars().count() > 24 => format!("{}…", &value[..end]),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::host::fake::Fake;
    use ciphervec_owner::Keys;
    use futures_lite::future::block_on;

    pub(in crate::belief) fn opened_with(host: &Fake, master: [u8; 32]) -> Result<Trust> {
        let vault = Arc::new(Vault::new(&Keys::from_master(master))?);
        block_on(Trust::open(Face::Rust, host, vault, "https://x", "docs"))
    }

    pub(in crate::belief) fn opened(host: &Fake) -> Trust {
        opened_with(host, [7; 32]).unwrap()
    }

    pub(in crate::belief) fn values(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
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
}
