//! Sealed blobs of a collection on a server: fetched alone or several at once, held until they are found right, and in the cache from
//! then on.

use std::sync::Arc;

use ciphervec_owner::SegmentId;

use crate::change::{Listing, StoredSegment};
use crate::error::{Error, Result};
use crate::hex::Hex;
use crate::host::Host;
use crate::remote::frame::split_blobs;
use crate::remote::session::{Call, Fetched};
use crate::remote::store::{Blob, Kept, RemoteStore};
use crate::store::CollectionStore;

/// Bytes of blobs held until they are found right; beyond that they are kept as they come.
const WAITING: usize = 64 << 20;
/// Bytes of a blob that comes with others in one answer, and blobs that are asked for at once.
const SMALL: u64 = 1 << 20;
const SEVERAL: usize = 1024;

impl RemoteStore {
    /// Holds what was fetched until it is found right; beyond some bytes it is kept as it comes.
    pub(super) async fn wait_for(
        &self,
        host: &dyn Host,
        segment: SegmentId,
        blob: &str,
        data: &Arc<[u8]>,
    ) -> Result<()> {
        let place = (segment, blob.to_owned());
        {
            let kept = &mut *self.kept();
            if kept.waiting + data.len() <= WAITING {
                kept.forget(&place);
                kept.waiting += data.len();
                kept.fetched.insert(place, Arc::clone(data));
                return Ok(());
            }
            kept.used.insert(place); // where it is wrong it is dropped, as others are
        }
        self.cache.put(host, &self.address(segment, blob), data).await
    }

    /// Takes out of the cache what this listing had and the present one has no more: rows that were erased are not to be found here.
    pub(super) async fn discard_gone(&self, host: &dyn Host, before: &Listing) -> Result<()> {
        let now = self.listing();
        for (id, segment) in &before.segments {
            let there = now.segments.get(id);
            for (name, length) in &segment.blobs {
                if there.and_then(|there| there.blobs.get(name)) == Some(length) {
                    continue;
                }
                let place = (*id, name.clone());
                {
                    let kept = &mut *self.kept();
                    kept.forget(&place);
                    kept.used.remove(&place);
                }
                self.cache.discard(host, &self.address(*id, name)).await?;
            }
        }
        Ok(())
    }

    /// A blob; none where the server has none and had none. [`Error::Conflict`] where it is gone, or has become shorter, because the
    /// collection has moved on: a server takes deleted rows out by itself.
    pub(super) async fn fetch(
        &self,
        host: &dyn Host,
        path: &str,
        length: u64,
        doing: &str,
    ) -> Result<Option<Vec<u8>>> {
        match self.session.fetch(host, path, length, doing).await? {
            Fetched::Blob(data) => Ok(Some(data)),
            Fetched::Absent => {
                self.refuse_if_moved(host, doing).await?;
                Ok(None)
            }
            Fetched::Changed(error) => {
                self.refuse_if_moved(host, doing).await?;
                Err(error)
            }
        }
    }

    /// Whether a blob of this length was fetched by this process, and is in memory.
    pub(super) fn has_fetched(&self, segment: SegmentId, blob: &str, length: u64) -> bool {
        let kept = self.kept();
        let fetched = kept.fetched.get(&(segment, blob.to_owned()));
        fetched.is_some_and(|data| data.len() as u64 == length)
    }

    pub(super) fn address(&self, segment: SegmentId, blob: &str) -> String {
        format!("{}\n{}\n{segment}\n{blob}", self.session.url, self.name)
    }
    pub(super) async fn read_blob(
        &self,
        host: &dyn Host,
        segment: SegmentId,
        blob: &str,
    ) -> Result<Arc<[u8]>> {
        let (length, fetched) = {
            let kept = self.kept();
            let listed = kept.listing.segments.get(&segment);
            let length = listed.and_then(|one| one.blobs.get(blob)).copied();
            (length, kept.fetched.get(&(segment, blob.to_owned())).cloned())
        };
        let suits = |held: &Arc<[u8]>| length.is_none_or(|length| held.len() as u64 == length);
        if let Some(held) = fetched.filter(suits) {
            return Ok(held);
        }
        if let Some(held) = self.cache.get(host, &self.address(segment, blob)).await?.filter(suits)
        {
            self.kept().used.insert((segment, blob.to_owned()));
            return Ok(held);
        }
        let doing = format!("cannot read {blob} of {}", self.quoted());
        let Some(length) = length else {
            return Err(Error::Authentication(format!(
                "{doing}: {} shows no stored blob to this token, which has not the permission read. Ask its operator for one with it: \
                 ciphervec token create --permission owner, or --permission query --permission read.",
                self.session.url
            )));
        };
        let path = format!("{}/segments/{segment}/{blob}", self.path);
        let Some(data) = self.fetch(host, &path, length, &doing).await? else {
            return Error::corrupt(format!(
                "{doing}: {} lists segment {segment} but has no {blob} of it. Ask its operator to verify the collection, and use a token \
                 with the permission read.",
                self.session.url
            ));
        };
        let data: Arc<[u8]> = data.into();
        self.wait_for(host, segment, blob, &data).await?;
        Ok(data)
    }

    pub(super) async fn prefetch_blobs(
        &self,
        host: &dyn Host,
        segments: &[Arc<StoredSegment>],
        blob: &str,
    ) -> Result<()> {
        let mut missing = Vec::new();
        for one in segments {
            let length = one.blobs.get(blob).copied().filter(|length| *length <= SMALL);
            if let Some(length) = length.filter(|length| !self.has_fetched(one.id, blob, *length))
                && self.cache.get(host, &self.address(one.id, blob)).await?.is_none()
            {
                missing.push((one.id, length));
            }
        }
        let doing = format!("cannot read {blob} of {}", self.quoted());
        let mut left = missing.as_slice();
        while left.len() > 1 && self.kept().several {
            let asked = &left[..left.len().min(SEVERAL)];
            let ids: Vec<_> = asked.iter().map(|(id, _)| Hex(id.0)).collect();
            let body = serde_json::json!({"blob": blob, "segments": ids}).to_string();
            let headers = vec![("Content-Type", "application/json".to_owned())];
            let limit = asked.iter().map(|(_, length)| *length as usize + 8).sum();
            let call = Call {
                body: Some(body.as_bytes()),
                headers,
                also: &[404, 405],
                limit,
                ..Call::default()
            };
            let reply = self
                .session
                .call(host, "POST", &format!("{}/blobs", self.path), &doing, call)
                .await?;
            if reply.head.status != 200 {
                self.kept().several = false; // an older server
                return Ok(());
            }
            let found = split_blobs(&reply.body);
            if found.is_empty() || found.len() > asked.len() {
                let says = "answered with other blobs. Open it again.";
                return Err(Error::server(format!("{doing}: {} {says}", self.session.url)));
            }
            for ((id, length), data) in asked.iter().zip(&found) {
                if let Some(data) = data.filter(|data| data.len() as u64 == *length) {
                    self.wait_for(host, *id, blob, &data.into()).await?;
                }
            }
            left = &left[found.len()..];
        }
        Ok(())
    }

    pub(super) async fn keep_blob(
        &self,
        host: &dyn Host,
        segment: SegmentId,
        blob: &str,
    ) -> Result<()> {
        let place = (segment, blob.to_owned());
        let data = {
            let kept = &mut *self.kept();
            kept.used.remove(&place);
            kept.forget(&place)
        };
        match data {
            Some(data) => self.cache.put(host, &self.address(segment, blob), &data).await,
            None => Ok(()),
        }
    }

    pub(super) async fn discard_blobs(
        &self,
        host: &dyn Host,
        segment: Option<SegmentId>,
        blob: Option<&str>,
    ) -> Result<bool> {
        let suits = |(of, name): &Blob| {
            segment.is_none_or(|one| one == *of) && blob.is_none_or(|one| one == name)
        };
        let mut dropped: Vec<_> = self.unkept().into_iter().filter(suits).collect();
        if let Some(segment) = segment {
            // Found right before, in part: records are sealed one by one.
            let listed = self
                .listing()
                .segments
                .get(&segment)
                .map(|one| one.blobs.keys().cloned().collect());
            let names =
                blob.map_or_else(|| listed.unwrap_or_default(), |blob| vec![blob.to_owned()]);
            for name in names {
                if self.cache.get(host, &self.address(segment, &name)).await?.is_some() {
                    dropped.push((segment, name));
                }
            }
        }
        for place in &dropped {
            {
                let kept = &mut *self.kept();
                kept.forget(place);
                kept.used.remove(place);
            }
            self.cache.discard(host, &self.address(place.0, &place.1)).await?;
        }
        Ok(!dropped.is_empty())
    }
}

impl Kept {
    pub(super) fn forget(&mut self, place: &Blob) -> Option<Arc<[u8]>> {
        let data = self.fetched.remove(place)?;
        self.waiting -= data.len();
        Some(data)
    }
}
