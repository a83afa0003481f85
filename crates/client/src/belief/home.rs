//! Homes: the collection with members that was seen under a name in a folder stays the one that is opened there.
//!
//! A collection in a folder is known by its origin, wherever it lies, which is enough where nobody but holders of its keys can make one
//! that opens. To a member anybody can seal keys, so that whoever keeps the folder could put another collection in the place of theirs.

use crate::belief::pins::Pin;
use crate::belief::trust::Trust;
use crate::belief::vault::Entry;
use crate::error::{Error, Result};
use crate::hex::Hex;
use crate::host::Host;

impl Trust {
    /// Of a collection in this folder. Links are not followed: whoever keeps the folder could have made them.
    #[cfg(feature = "folder")]
    pub fn at(mut self, folder: &std::path::Path) -> Self {
        let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        self.home = Some(path.join(&self.collection).display().to_string());
        self
    }

    /// That no collection of another origin was seen here; that none was at all, for one that has no states.
    pub async fn expect_home(&self, host: &dyn Host, origin: Option<&[u8; 16]>) -> Result<()> {
        let Some(entry) = self.home_entry() else { return Ok(()) };
        let Some(Entry::Data(seen)) = self.vault.get(host, &entry).await? else { return Ok(()) };
        if origin.is_some_and(|origin| seen == Hex(*origin).to_string().as_bytes()) {
            return Ok(());
        }
        let name = self.name();
        Err(Error::Mismatch(format!(
            "the collection {name} in {} is not the one that was seen there under this name: it was dropped and made again by somebody, or \
             replaced by whoever keeps the folder. Compare the fingerprint of its owner with that person, and accept it with \
             client.forget({name}).",
            self.server
        )))
    }

    /// Remembers that this is the one that lies here, if it has members.
    pub(super) async fn keep_home(&self, host: &dyn Host, pin: &Pin) -> Result<()> {
        let Some(entry) = self.home_entry().filter(|_| pin.members.is_some()) else {
            return Ok(());
        };
        if self.known().home.as_ref() == Some(&pin.origin) {
            return Ok(());
        }
        if self.vault.get(host, &entry).await?.is_none() {
            self.vault.put(host, &entry, pin.origin.as_bytes()).await?;
        }
        self.known().home = Some(pin.origin.clone());
        Ok(())
    }

    /// Forgets which one was seen here; whether one was.
    pub async fn forget_home(&self, host: &dyn Host) -> Result<bool> {
        self.known().home = None;
        let Some(entry) = self.home_entry() else { return Ok(false) };
        let seen = host.get(&entry).await?.is_some();
        host.delete(&entry).await?;
        Ok(seen)
    }

    fn home_entry(&self) -> Option<String> {
        let of = format!("{}\n{}", self.home.as_ref()?, self.vault.key_id());
        Some(format!("place/{}", blake3::hash(of.as_bytes()).to_hex()))
    }
}
