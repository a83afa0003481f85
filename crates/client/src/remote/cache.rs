//! Sealed blobs of segments, so that the server is not asked for them again. A segment never changes, so its id and a blob's name are the
//! blob's address for ever. What is put here was authenticated before, and is again whenever it is opened.

use std::sync::{Arc, Mutex, PoisonError};

use crate::belief::vault::{Entry, Vault};
use crate::error::{Error, Result};
use crate::host::Host;

const PREFIX: &str = "blobs/";

/// At most so many bytes of blobs, the ones unused for longest leaving first.
pub struct BlobCache {
    vault: Arc<Vault>,
    limit: u64,
    /// Bytes held; none until the storage was counted.
    held: Mutex<Option<u64>>,
}

impl BlobCache {
    pub fn new(vault: Arc<Vault>, limit: u64) -> Self {
        BlobCache { vault, limit, held: Mutex::new(None) }
    }

    /// What was put there. An entry that was damaged, or is under other keys, is as good as none.
    pub async fn get(&self, host: &dyn Host, address: &str) -> Result<Option<Arc<[u8]>>> {
        match self.vault.get(host, &name(address)).await {
            Ok(Some(Entry::Data(data))) => Ok(Some(data.into())),
            Ok(_) | Err(Error::Corrupt(_) | Error::Storage(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether blobs of these lengths are all here, by what the storage says of each.
    pub async fn holds(&self, host: &dyn Host, blobs: &[(String, u64)]) -> Result<bool> {
        let names: Vec<_> = blobs.iter().map(|(address, _)| name(address)).collect();
        let there = match host.lengths(PREFIX, &names).await {
            Err(Error::Storage(_)) => return Ok(false),
            there => there?,
        };
        let overhead = self.vault.overhead()?;
        let mut pairs = blobs.iter().zip(there);
        Ok(pairs
            .all(|((_, length), there)| there.is_some() && there == length.checked_add(overhead)))
    }

    /// Keeps a blob, unless it would take more than an eighth of the room. A storage without room only costs the saving.
    pub async fn put(&self, host: &dyn Host, address: &str, data: &[u8]) -> Result<()> {
        if data.len() as u64 > self.limit / 8 {
            return Ok(());
        }
        match self.keep(host, address, data).await {
            Err(Error::Storage(_)) => match self.make_room(host).await {
                Err(Error::Storage(_)) | Ok(()) => Ok(()), // for the next one
                Err(error) => Err(error),
            },
            done => done,
        }
    }

    /// What was put there was found to be wrong.
    pub async fn discard(&self, host: &dyn Host, address: &str) -> Result<()> {
        match host.delete(&name(address)).await {
            Err(Error::Storage(_)) => Ok(()),
            done => done,
        }
    }

    async fn keep(&self, host: &dyn Host, address: &str, data: &[u8]) -> Result<()> {
        let held = *self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let held = match held {
            Some(held) => held,
            None => host.list(PREFIX).await?.iter().map(|(_, bytes)| bytes).sum(),
        };
        self.vault.put(host, &name(address), data).await?;
        let now = held + data.len() as u64;
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        if now > self.limit { self.make_room(host).await } else { Ok(()) }
    }

    /// Removes the oldest until a tenth of the room is free.
    async fn make_room(&self, host: &dyn Host) -> Result<()> {
        let there = host.list(PREFIX).await?;
        let mut held: u64 = there.iter().map(|(_, bytes)| bytes).sum();
        let wanted = self.limit.min(held) / 10 * 9;
        for (name, bytes) in there {
            if held <= wanted {
                break;
            }
            host.delete(&name).await?;
            held -= bytes;
        }
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(())
    }
}

fn name(address: &str) -> String {
    format!("{PREFIX}{}", blake3::hash(address.as_bytes()).to_hex())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Fake;
    use ciphervec_owner::Keys;
    use futures_lite::future::block_on;

    #[test]
    fn a_cache_stays_within_its_room_and_a_full_disk_costs_the_saving_alone() {
        let host = Fake::default();
        let vault = Arc::new(Vault::new(&Keys::from_master([7; 32])).unwrap());
        let cache = BlobCache::new(vault, 20_000);
        for i in 0..40u8 {
            block_on(cache.put(&host, &format!("blob {i}"), &[i; 1_000])).unwrap();
        }
        let held: u64 = block_on(host.list(PREFIX)).unwrap().iter().map(|(_, bytes)| bytes).sum();
        assert!(held < 22_000, "{held}");
        assert!(block_on(cache.get(&host, "blob 0")).unwrap().is_none());
        assert_eq!(
            block_on(cache.get(&host, "blob 39")).unwrap().as_deref(),
            Some(&[39; 1_000][..])
        );
        block_on(cache.put(&host, "too long", &[0; 5_000])).unwrap();
        assert!(block_on(cache.get(&host, "too long")).unwrap().is_none());
        let held = |blob: &str, length| {
            block_on(cache.holds(&host, &[(blob.to_owned(), length)])).unwrap()
        };
        assert!(held("blob 39", 1_000) && !held("blob 0", 1_000));
        assert!(!held("blob 39", 999), "it would be read anew");
        host.full.set(true);
        block_on(cache.put(&host, "late", &[1])).unwrap();
        assert!(block_on(cache.get(&host, "late")).unwrap().is_none());
        block_on(cache.discard(&host, "blob 39")).unwrap();
        assert!(block_on(cache.get(&host, "blob 39")).unwrap().is_none());
    }
}
