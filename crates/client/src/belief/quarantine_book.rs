//! What a user's storage says of a collection's quarantine. An entry for each segment, under the collection's description and not under an
//! address: a server that is reached by another name shows the same segments.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ciphervec_owner::IndexSpec;

use crate::belief::vault::{Entry, Vault};
use crate::error::{Error, Result};
use crate::gathered::gathered;
use crate::host::Host;

type Reasons = BTreeMap<String, String>;

/// Why segments of one collection are in quarantine, by id.
pub struct QuarantineBook {
    vault: Arc<Vault>,
    prefix: String,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    written: Reasons,
    /// In quarantine as well; the storage did not take them yet.
    unwritten: Reasons,
}

impl QuarantineBook {
    /// Read by the first [`Self::reload`].
    pub fn new(vault: Arc<Vault>, spec: &IndexSpec) -> Self {
        let collection = blake3::hash(&spec.to_bytes()).to_hex();
        let prefix = format!("quarantine/{}", &collection[..32]);
        QuarantineBook { vault, prefix, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them.
    pub fn held(&self) -> Reasons {
        let known = self.known();
        let all = known.written.iter().chain(&known.unwritten);
        gathered(all.map(|(id, why)| (id.clone(), why.clone())))
    }

    /// Whether a later session will know of a segment.
    pub fn keeps(&self, host: &dyn Host, segment: &str) -> bool {
        host.durable() && self.known().written.contains_key(segment)
    }

    /// Takes in what other clients of this user have put there and released, and writes down what could not be before, if that can be.
    pub async fn reload(&self, host: &dyn Host) -> Result<()> {
        let mut written = Reasons::new();
        for (entry, _) in host.list(&self.prefix).await? {
            let segment = &entry[self.prefix.len()..];
            let known = self.known().written.get(segment).cloned();
            let reason = match known {
                Some(reason) => reason,
                None => self.reason(host, &entry).await?,
            };
            written.insert(segment.to_owned(), reason);
        }
        let unwritten = {
            let known = &mut *self.known();
            known.written = written;
            known.unwritten.clone()
        };
        for (segment, reason) in unwritten {
            match self.hold(host, segment, &reason).await {
                Ok(()) | Err(Error::Storage(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// An entry that does not open still stands for its segment.
    async fn reason(&self, host: &dyn Host, entry: &str) -> Result<String> {
        match self.vault.get(host, entry).await {
            Ok(Some(Entry::Data(reason))) => Ok(String::from_utf8_lossy(&reason).into_owned()),
            Ok(_) | Err(Error::Corrupt(_) | Error::Version(_)) => {
                Ok("what was written of it can't be read".to_owned())
            }
            Err(error) => Err(error),
        }
    }

    /// Puts a segment into quarantine: it is, whether or not that could be written down.
    pub async fn hold(&self, host: &dyn Host, segment: String, reason: &str) -> Result<()> {
        self.known().unwritten.insert(segment.clone(), reason.to_owned());
        self.vault.put(host, &format!("{}{segment}", self.prefix), reason.as_bytes()).await?;
        let known = &mut *self.known();
        known.unwritten.remove(&segment);
        known.written.insert(segment, reason.to_owned());
        Ok(())
    }

    /// Takes a segment out again.
    pub async fn release(&self, host: &dyn Host, segment: &str) -> Result<()> {
        let there = {
            let known = &mut *self.known();
            known.unwritten.remove(segment);
            known.written.remove(segment).is_some()
        };
        match there {
            true => host.delete(&format!("{}{segment}", self.prefix)).await,
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Fake;
    use ciphervec_owner::{Keys, Metric, Mode, Precision};
    use futures_lite::future::block_on;

    fn opened(host: &Fake, master: u8, collection: &str) -> QuarantineBook {
        let vault = Arc::new(Vault::new(&Keys::from_master([master; 32])).unwrap());
        let spec =
            IndexSpec::new(collection, 8, Metric::Cosine, Mode::SealedIndex, Precision::Standard)
                .unwrap();
        let book = QuarantineBook::new(vault, &spec);
        block_on(book.reload(host)).unwrap();
        book
    }

    fn names(book: &QuarantineBook) -> Vec<String> {
        book.held().into_keys().collect()
    }

    #[test]
    fn every_client_of_the_collection_knows_until_one_releases() {
        let here = Fake::default();
        let there = Fake::beside(&here);
        let (one, two) = (opened(&here, 7, "docs"), opened(&there, 7, "docs"));
        block_on(one.hold(&here, "aa".to_owned(), "it failed")).unwrap();
        block_on(two.hold(&there, "bb".to_owned(), "so did this")).unwrap();
        block_on(one.reload(&here)).unwrap();
        let both = [("aa", "it failed"), ("bb", "so did this")];
        let both = both.map(|(id, why)| (id.to_owned(), why.to_owned())).into();
        assert_eq!((one.held(), opened(&here, 7, "docs").held()), (Reasons::clone(&both), both));
        assert!(names(&opened(&here, 7, "letters")).is_empty());
        block_on(two.reload(&there)).unwrap();
        block_on(two.release(&there, "aa")).unwrap();
        block_on(two.release(&there, "cc")).unwrap();
        block_on(one.reload(&here)).unwrap();
        for book in [&one, &two, &opened(&here, 7, "docs")] {
            assert_eq!(names(book), ["bb"]);
        }
        // Damaged, and under other keys, it still stands for its segment.
        assert_eq!(names(&opened(&here, 8, "docs")), ["bb"]);
        let entry = block_on(here.list(&one.prefix)).unwrap()[0].0.clone();
        block_on(here.put(&entry, b"rubbish")).unwrap();
        assert_eq!(names(&opened(&here, 7, "docs")), ["bb"]);
    }

    #[test]
    fn a_storage_without_room_forgets_nothing() {
        let host = Fake::default();
        let book = opened(&host, 7, "docs");
        block_on(book.hold(&host, "bb".to_owned(), "it failed")).unwrap();
        host.full.set(true);
        let full = block_on(book.hold(&host, "dd".to_owned(), "again"));
        assert!(matches!(full, Err(Error::Storage(_))));
        block_on(book.reload(&host)).unwrap();
        assert_eq!(names(&book), ["bb", "dd"]);
        assert_eq!(["bb", "dd", "ee"].map(|id| book.keeps(&host, id)), [true, false, false]);
        host.full.set(false);
        block_on(book.reload(&host)).unwrap();
        assert!(book.keeps(&host, "dd"));
        assert_eq!(names(&opened(&host, 7, "docs")), ["bb", "dd"]);
    }
}
