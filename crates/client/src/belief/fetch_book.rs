//! What a user's storage says of a collection's private fetches: how many failed a check, and whether any are made still.
//!
//! A server that changes one record and sees that its reader fails learns whether that record was asked for. So one failure ends them for
//! every client of this user, until the user goes on, and is counted for good. An entry under the collection's description, as in
//! [`super::quarantine_book`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ciphervec::IndexSpec;
use serde::{Deserialize, Serialize};

use crate::belief::vault::{Entry, Vault};
use crate::error::{Error, Result};
use crate::host::Host;

/// What became of private fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// How many failed a check: each may have told a server whether one row was among those asked for.
    pub count: u32,
    /// Whether none is made any more.
    pub ended: bool,
}

/// The failures of one collection.
pub struct FetchBook {
    vault: Arc<Vault>,
    entry: String,
    known: Mutex<Failures>,
}

impl FetchBook {
    /// Read by the first [`Self::reload`].
    pub fn new(vault: Arc<Vault>, spec: &IndexSpec) -> Self {
        let collection = blake3::hash(&spec.to_bytes()).to_hex();
        let entry = format!("private-fetch/{}", &collection[..32]);
        FetchBook { vault, entry, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Failures> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As far as is known here.
    pub fn failures(&self) -> Failures {
        *self.known()
    }

    /// Takes in what other clients of this user have seen, and writes down what could not be before, if that can be.
    pub async fn reload(&self, host: &dyn Host) -> Result<()> {
        let written = self.written(host).await?;
        let here = self.failures();
        if here.count <= written.count {
            *self.known() = written;
            return Ok(());
        }
        match self.write(host, here).await {
            Ok(()) | Err(Error::Storage(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// An entry that does not open stands for a failure.
    async fn written(&self, host: &dyn Host) -> Result<Failures> {
        let unknown = Failures { count: 1, ended: true };
        match self.vault.get(host, &self.entry).await {
            Ok(None) => Ok(Failures::default()),
            Ok(Some(Entry::Data(data))) => Ok(serde_json::from_slice(&data).unwrap_or(unknown)),
            Ok(Some(Entry::OtherKeys(_))) | Err(Error::Corrupt(_) | Error::Version(_)) => {
                Ok(unknown)
            }
            Err(error) => Err(error),
        }
    }

    async fn write(&self, host: &dyn Host, failures: Failures) -> Result<()> {
        let data = serde_json::to_vec(&failures)
            .map_err(|error| Error::Storage(format!("private fetches: {error}")))?;
        self.vault.put(host, &self.entry, &data).await
    }

    /// One failed: none is made any more, whether or not that could be written down.
    pub async fn end(&self, host: &dyn Host) -> Result<()> {
        let _alone = host.lock(&self.entry).await?;
        let written = self.written(host).await;
        let failures = {
            let known = &mut *self.known();
            let before = written.as_ref().map_or(0, |written| written.count).max(known.count);
            *known = Failures { count: before.saturating_add(1), ended: true };
            *known
        };
        written?;
        self.write(host, failures).await
    }

    /// They are made again. What was counted stays.
    pub async fn resume(&self, host: &dyn Host) -> Result<()> {
        let _alone = host.lock(&self.entry).await?;
        let written = self.written(host).await?;
        let failures = Failures { count: written.count.max(self.failures().count), ended: false };
        self.write(host, failures).await?;
        *self.known() = failures;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Fake;
    use ciphervec::{Keys, Metric, Mode, Precision};
    use futures_lite::future::block_on;

    fn opened(host: &Fake, master: u8, collection: &str) -> FetchBook {
        let vault = Arc::new(Vault::new(&Keys::from_master([master; 32])).unwrap());
        let spec = IndexSpec::new(collection, 8, Metric::Cosine, Mode::Sealed, Precision::Standard)
            .unwrap();
        let book = FetchBook::new(vault, &spec);
        block_on(book.reload(host)).unwrap();
        book
    }

    fn said(book: &FetchBook) -> (u32, bool) {
        (book.failures().count, book.failures().ended)
    }

    #[test]
    fn one_failure_counts_for_every_client_until_the_user_goes_on() {
        let here = Fake::default();
        let there = Fake::beside(&here);
        let (one, two) = (opened(&here, 7, "docs"), opened(&there, 7, "docs"));
        assert_eq!(said(&one), (0, false));
        block_on(one.end(&here)).unwrap();
        assert_eq!(said(&opened(&here, 7, "docs")), (1, true));
        assert_eq!(said(&opened(&here, 7, "letters")), (0, false));
        block_on(two.end(&there)).unwrap();
        assert_eq!(said(&two), (2, true));
        block_on(one.reload(&here)).unwrap();
        block_on(one.resume(&here)).unwrap();
        assert_eq!(said(&opened(&there, 7, "docs")), (2, false));
        block_on(two.reload(&there)).unwrap();
        assert_eq!(said(&two), (2, false));
        // Damaged, and under other keys, it stands for a failure.
        assert_eq!(said(&opened(&here, 8, "docs")), (1, true));
        block_on(here.put(&one.entry, b"rubbish")).unwrap();
        assert_eq!(said(&opened(&here, 7, "docs")), (1, true));
    }

    #[test]
    fn a_storage_without_room_forgets_no_failure() {
        let host = Fake::default();
        let book = opened(&host, 7, "docs");
        host.full.set(true);
        assert!(matches!(block_on(book.end(&host)), Err(Error::Storage(_))));
        block_on(book.reload(&host)).unwrap();
        assert_eq!(said(&book), (1, true));
        host.full.set(false);
        block_on(book.reload(&host)).unwrap();
        assert_eq!(said(&opened(&host, 7, "docs")), (1, true));
    }
}
