//! What a server does to a collection: commits, checks of what is stored, and deletion of what no present state needs.

use std::sync::Arc;

use serde::Deserialize;

use crate::belief::trust::{KEY_ID, Trust};
use crate::change::{Change, ORIGINALS, ROWS, STATE};
use crate::error::{Error, Result};
use crate::host::{Host, Progress};
use crate::remote::listing::public_parameters;
use crate::remote::problem::error_of;
use crate::remote::session::Call;
use crate::remote::store::RemoteStore;
use crate::store::{CollectionStore, Committed, Verified};

/// Bytes of blobs that go in the frame of a commit; the largest ones beyond that are uploaded first.
const INLINE: usize = 24 << 20;
const LEAST_INLINE: usize = 256 << 10;
/// Faults of stored bytes that a message lists.
const FAULTS: usize = 20;

impl RemoteStore {
    pub(super) async fn commit_change(&self, host: &dyn Host, change: &Change) -> Result<()> {
        let doing = format!("cannot commit to {}", self.quoted());
        self.trust.prepare(host).await?;
        let (before, since) = (self.listing(), self.trust.version());
        if let Some(meta) = &change.meta {
            self.kept().given = public_parameters(meta).map(|(_, key_id)| key_id);
        }
        let mut reply = self.send(host, change, INLINE, &before, &doing).await?;
        if reply.head.status == 413 {
            reply = self.send(host, change, LEAST_INLINE, &before, &doing).await?;
        }
        if reply.head.status == 412 {
            let says =
                "others commit to it faster than this client. Try again when there are fewer.";
            return Err(Error::Conflict(format!("{doing}: {says}")));
        }
        self.kept().uploads.clear();
        if reply.head.status != 200 {
            return Err(error_of(&reply, &doing, &self.session.url));
        }
        let made: Committed = self.session.json(&reply, &doing)?;
        let (version, head) = (made.version, made.head());
        if version != before.version + 1 {
            return Err(Error::CommitUncertain(format!(
                "{doing}: {} made version {version} of a change to version {}. Look at what is there, and ask its operator.",
                self.session.url, before.version
            )));
        }
        self.kept().listing = Arc::new(before.after(change, version, head.clone()));
        let seen = async {
            self.trust
                .see(host, version, &head, since, change.attachments.contains_key(STATE))
                .await?;
            self.repin(host, change).await
        };
        Trust::afterwards(host, &format!("the change to {}", self.quoted()), seen).await?;
        self.discard_gone(host, &before).await?;
        for added in &change.add {
            for (name, blob) in
                added.blobs.iter().filter(|(name, _)| ![ROWS, ORIGINALS].contains(*name))
            {
                self.cache.put(host, &self.address(added.id, name), blob).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn verify_blocks(&self, host: &dyn Host) -> Result<Verified> {
        #[derive(Deserialize)]
        struct Fault {
            file: String,
            offset: u64,
        }
        #[derive(Deserialize)]
        struct Said {
            problems: Vec<Fault>,
        }
        let doing = format!("cannot verify {}", self.quoted());
        let reply = self
            .session
            .call(host, "POST", &format!("{}/verify", self.path), &doing, Call::default())
            .await?;
        let Said { problems } = self.session.json(&reply, &doing)?;
        let verified: Verified = self.session.json(&reply, &doing)?;
        if problems.is_empty() {
            let (done, total) = (verified.bytes, Some(verified.bytes));
            host.progress(Progress { phase: "read", done, total, ms: None });
            return Ok(verified);
        }
        let faults = problems.iter().take(FAULTS);
        let mut faults: Vec<_> = faults
            .map(|Fault { file, offset }| format!("{file}, byte {offset}: damaged on the server"))
            .collect();
        if problems.len() > FAULTS {
            faults.push(format!("and {} more", problems.len() - FAULTS));
        }
        Error::corrupt(faults.join("\n"))
    }

    pub(super) async fn purge_old(&self, host: &dyn Host) -> Result<()> {
        let call = Call { also: &[204], not_200: true, ..Call::default() };
        let doing = format!("cannot purge {}", self.quoted());
        self.session
            .call(host, "POST", &format!("{}/purge", self.path), &doing, call)
            .await
            .map(drop)
    }

    pub(super) async fn tidy_up(&self, host: &dyn Host) -> Result<()> {
        let call = Call { also: &[204, 403, 404, 405], not_200: true, ..Call::default() };
        let (doing, url) = (format!("cannot purge {}", self.quoted()), &self.session.url);
        let reply =
            self.session.call(host, "POST", &format!("{}/purge", self.path), &doing, call).await?;
        match reply.head.status {
            204 => {}
            403 => host.warn(&format!(
                "{doing}: {url} wants a token with the permission admin for that. The change itself is done, but the sealed bytes of what was \
                 removed stay there until the collection is purged: have somebody with such a token call optimize, or ask the server's \
                 operator."
            )),
            _ => host.warn(&format!(
                "{doing}: {url} does not know how. The change itself is done, but the sealed bytes of what was removed may stay there until \
                 its operator compacts the collection. Upgrade the server."
            )),
        }
        Ok(())
    }

    /// The owner has changed the keys from here.
    async fn repin(&self, host: &dyn Host, change: &Change) -> Result<()> {
        let Some(meta) = &change.meta else { return Ok(()) };
        let Some((spec, key_id)) = public_parameters(meta) else { return Ok(()) };
        let values = [("spec".to_owned(), spec), (KEY_ID.to_owned(), key_id)];
        let news = values
            .iter()
            .any(|(name, value)| self.trust.pinned(name).is_some_and(|known| known != *value));
        if news { self.trust.repin(host, &values).await } else { Ok(()) }
    }
}
