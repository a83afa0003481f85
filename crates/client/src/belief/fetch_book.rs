//! What a user's storage says of a collection's private fetches: how many failed a check, and whether any are made still.
//!
//! A server that changes one record and sees that its reader fails learns whether that record was asked for. So one failure ends them for
//! every client of this user, until the user goes on, and is counted for good. An entry under the collection's description, as in
//! [`super::quarantine_book`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ciphervec_owner::IndexSpec;
use serde::{Deserialize, Serialize};

use crate::belief::vault::{Entry, Vault};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::json;

/// What became of private fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// How many failed a check: each may have told a server whether one row was among those asked for.
    pub count: u32,
    /// Whether none is made any more.
    pub ended: bool,
}

/// As far as is known here.
#[derive(Clone, Copy, Default)]
struct Known {
    failures: Failures,
    /// How many of them are not written down.
    owed: u32,
}

/// The failures of one collection, or keyed table.
pub struct FetchBook {
    vault: Arc<Vault>,
    entry: String,
    known: Mutex<Known>,
}

impl FetchBook {
    /// Read by the first [`Self::reload`].
    pub fn new(vault: Arc<Vault>, spec: &IndexSpec) -> Self {
        Self::of(vault, &spec.to_bytes())
    }

    /// Of what these bytes name.
    pub fn of(vault: Arc<Vault>, named: &[u8]) -> Self {
        let named = blake3::hash(named).to_hex();
        let entry = format!("private-fetch/{}", &named[..32]);
        FetchBook { vault, entry, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As far as is known here.
    pub fn failures(&self) -> Failures {
        self.known().failures
    }

    /// Takes in what other clients of this user have seen, and writes down what could not be before, if that can be.
    pub async fn reload(&self, host: &dyn Host) -> Result<()> {
        let written = self.written(host).await?;
        match self.settle(host, written).await {
            Err(Error::Storage(_)) => Ok(()),
            done => done,
        }
    }

    async fn settle(&self, host: &dyn Host, written: Failures) -> Result<()> {
        let Known { failures, owed } = {
            let known = &mut *self.known();
            let Known { failures: here, owed } = *known;
            known.failures = if owed == 0 && here.count <= written.count {
                written
            } else {
                let count = written.count.saturating_add(owed).max(here.count);
                Failures { count, ended: here.ended }
            };
            *known
        };
        if failures == written {
            return Ok(());
        }
        self.write(host, failures).await?;
        let known = &mut *self.known();
        known.owed = known.owed.saturating_sub(owed);
        Ok(())
    }

    /// An entry that does not open stands for a failure.
    async fn written(&self, host: &dyn Host) -> Result<Failures> {
        let unknown = Failures { count: 1, ended: true };
        match self.vault.get(host, &self.entry).await {
            Ok(None) => Ok(Failures::default()),
            Ok(Some(Entry::Data(data))) => Ok(json::read(&data).unwrap_or(unknown)),
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

    /// One failed: none is made any more, whether or not that can be written down, and whoever ends the call meanwhile.
    pub async fn end(&self, host: &dyn Host) -> Result<()> {
        {
            let known = &mut *self.known();
            let count = known.failures.count.saturating_add(1);
            known.failures = Failures { count, ended: true };
            known.owed = known.owed.saturating_add(1);
        }
        let _alone = host.lock(&self.entry).await?;
        let written = self.written(host).await?;
        self.settle(host, written).await
    }

    /// They are made again. What was counted stays.
    pub async fn resume(&self, host: &dyn Host) -> Result<()> {
        let _alone = host.lock(&self.entry).await?;
        let written = self.written(host).await?;
        let Known { failures: here, owed } = *self.known();
        let count = written.count.saturating_add(owed).max(here.count);
        let failures = Failures { count, ended: false };
        self.write(host, failures).await?;
        *self.known() = Known { failures, owed: 0 };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Fake;
    use ciphervec_owner::{Keys, Metric, Mode, Precision};
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

    #[test]
    fn one_that_can_t_be_written_down_ends_them_here_and_is_counted_beside_others() {
        let here = Fake::default();
        let there = Fake::beside(&here);
        let (one, two) = (opened(&here, 7, "docs"), opened(&there, 7, "docs"));
        // Nobody else may write meanwhile; and the call that waits for that may be ended.
        here.held.set(true);
        assert!(block_on(one.end(&here)).is_err());
        assert_eq!(said(&one), (1, true));
        block_on(two.end(&there)).unwrap();
        block_on(two.resume(&there)).unwrap();
        assert_eq!(said(&two), (1, false));
        here.held.set(false);
        block_on(one.reload(&here)).unwrap();
        assert_eq!(said(&one), (2, true));
        block_on(two.reload(&there)).unwrap();
        assert_eq!(said(&two), (2, true));
        block_on(one.resume(&here)).unwrap();
        assert_eq!(said(&opened(&there, 7, "docs")), (2, false));
    }
}
