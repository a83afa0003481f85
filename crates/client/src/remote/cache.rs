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
