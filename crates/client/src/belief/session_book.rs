//! What a user's storage says of the session that queries of one collection are asked under, for every process of this user's: which it
//! is, and how many queries of it are counted. An entry for each key, under the collection's description, as in
//! [`super::quarantine_book`].
//!
//! A session that can't be read is no session: whoever asks next draws another one.

use std::sync::Arc;

use ciphervec_owner::{IndexSpec, KeyId};
use serde::{Deserialize, Serialize};

use crate::belief::vault::{Entry, Vault};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::json;

/// A session, and how many queries of it are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub epoch: u32,
    pub used: usize,
}

/// The sessions of one collection.
pub struct SessionBook {
    vault: Arc<Vault>,
    spec: Vec<u8>,
}

impl SessionBook {
    pub fn new(vault: Arc<Vault>, spec: &IndexSpec) -> Self {
        SessionBook { vault, spec: spec.to_bytes() }
    }

    fn entry(&self, key: KeyId) -> String {
        let of = [&*self.spec, key.to_string().as_bytes()].concat();
        format!("sessions/{}", &blake3::hash(&of).to_hex()[..32])
    }

    async fn read(&self, host: &dyn Host, entry: &str) -> Result<Option<Session>> {
        match self.vault.get(host, entry).await {
            Ok(Some(Entry::Data(data))) => Ok(json::read(&data).ok()),
            Ok(_) | Err(Error::Corrupt(_) | Error::Version(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The present one.
    pub async fn look(&self, host: &dyn Host, key: KeyId) -> Result<Option<Session>> {
        self.read(host, &self.entry(key)).await
    }

    /// Puts what `next` makes of the present session in its place, durably. Nobody else does meanwhile.
    pub async fn change(
        &self,
        host: &dyn Host,
        key: KeyId,
        next: impl FnOnce(Option<Session>) -> Result<Session>,
    ) -> Result<Session> {
        let entry = self.entry(key);
        let _alone = host.lock(&entry).await?;
        let session = next(self.read(host, &entry).await?)?;
        let data = serde_json::to_vec(&session)
            .map_err(|error| Error::Storage(format!("query keys: {error}")))?;
        self.vault.put(host, &entry, &data).await?;
        Ok(session)
    }

    /// Forgets it.
    pub async fn end(&self, host: &dyn Host, key: KeyId) -> Result<()> {
        let entry = self.entry(key);
        let _alone = host.lock(&entry).await?;
        host.delete(&entry).await
    }
}
