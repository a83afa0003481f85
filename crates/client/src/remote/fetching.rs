//! Private fetch over HTTP: what a server offers, its evaluation keys, and sealed queries; and parts of blobs, for fetches that are not.

use async_trait::async_trait;
use ciphervec_owner::SegmentId;
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::hex::Hex;
use crate::host::Host;
use crate::remote::problem::{error_of, is_problem, words};
use crate::remote::session::Call;
use crate::remote::store::{OCTETS, RemoteStore};
use crate::store::{CollectionStore, FetchOffer, Fetched, Fetching, Offered};

/// Bytes of a blob that are asked for at once.
const PART: u64 = 512 << 10;

#[derive(Deserialize)]
struct SaidOffer {
    table: Hex<16>,
    place_bytes: u32,
    #[serde(default)]
    long_rows: Vec<u32>,
    #[serde(default)]
    long_place_bytes: u32,
    table_bytes: u64,
    seconds: f64,
    seconds_of_ten: f64,
}

#[async_trait(?Send)]
impl Fetching for RemoteStore {
    async fn offer(&self, host: &dyn Host, blob: &str) -> Result<Offered> {
        if self.listing().fetch_version == 0 {
            let says = "its server is of a release without private fetch".to_owned();
            return Ok(Offered::Refused(says));
        }
        let doing = format!("cannot fetch {blob} of {} in private", self.quoted());
        let path = format!("{}/fetch/{blob}", self.path);
        // What answers in the server's place may pass on what it says, and know less.
        let call = Call { also: &[404, 405, 422], ..Call::default() };
        let reply = self.session.call(host, "GET", &path, &doing, call).await?;
        if reply.head.status != 200 {
            return Ok(Offered::Refused(words(&reply)));
        }
        let said: SaidOffer = self.session.json(&reply, &doing)?;
        let seconds = [said.seconds, said.seconds_of_ten];
        if !seconds.iter().all(|seconds| seconds.is_finite() && *seconds >= 0.0) {
            let url = &self.session.url;
            return Err(Error::server(format!("{doing}: {url} says that it takes no time.")));
        }
        Ok(Offered::Table(FetchOffer {
            table: said.table.0,
            place_bytes: said.place_bytes as usize,
            long_rows: said.long_rows,
            long_place_bytes: said.long_place_bytes as usize,
            table_bytes: said.table_bytes,
            seconds,
        }))
    }

    async fn bring_keys(&self, host: &dyn Host, keys: &[u8]) -> Result<()> {
        let doing = format!("cannot bring fetch keys for {}", self.quoted());
        let call = Call {
            body: Some(keys),
            headers: vec![("Content-Type", OCTETS.to_owned())],
            also: &[204],
            not_200: true,
            ..Call::default()
        };
        let path = format!("{}/fetch-keys", self.path);
        self.session.call(host, "PUT", &path, &doing, call).await.map(drop)
    }

    async fn fetch(
        &self,
        host: &dyn Host,
        blob: &str,
        table: &[u8; 16],
        query: &[u8],
        most: usize,
    ) -> Result<Fetched> {
        let doing = format!("cannot fetch {blob} of {} in private", self.quoted());
        let call = Call {
            body: Some(query),
            headers: vec![("Content-Type", OCTETS.to_owned())],
            also: &[409, 410],
            limit: most,
            ..Call::default()
        };
        let path = format!("{}/fetch/{blob}/{}", self.path, Hex(*table));
        let reply = self.session.call(host, "POST", &path, &doing, call).await?;
        match reply.head.status {
            200 => Ok(Fetched::Answer(reply.body)),
            409 if is_problem(&reply, "fetch-keys-missing") => Ok(Fetched::KeysMissing),
            410 => Err(Error::Conflict(format!(
                "{doing}: it changes faster than its rows are fetched. Try again."
            ))),
            _ => Err(error_of(&reply, &doing, &self.session.url)),
        }
    }

    async fn holds(
        &self,
        host: &dyn Host,
        blobs: &[(SegmentId, &'static str, u64)],
    ) -> Result<bool> {
        let left: Vec<_> = blobs
            .iter()
            .filter(|(segment, blob, length)| !self.has_fetched(*segment, blob, *length))
            .map(|(segment, blob, length)| (self.address(*segment, blob), *length))
            .collect();
        Ok(left.is_empty() || self.cache.holds(host, &left).await?)
    }

    async fn part(
        &self,
        host: &dyn Host,
        (segment, blob): (SegmentId, &str),
        from: u64,
        length: u64,
    ) -> Result<Vec<u8>> {
        let doing = format!("cannot read {blob} of {}", self.quoted());
        let path = format!("{}/segments/{segment}/{blob}", self.path);
        let mut came = Vec::new();
        let end = from.saturating_add(length);
        let mut at = from;
        while at < end {
            let next = end.min(at + PART);
            let range = format!("bytes={at}-{}", next - 1);
            let call = Call {
                headers: vec![("Range", range)],
                also: &[206, 404, 416],
                not_200: true,
                ..Call::default()
            };
            let reply = self.session.call(host, "GET", &path, &doing, call).await?;
            if reply.head.status != 206 || reply.body.len() as u64 != next - at {
                self.refuse_if_moved(host, &doing).await?;
                return Err(Error::server(format!(
                    "{doing}: {} does not give the bytes that were asked for. Open the collection again.",
                    self.session.url
                )));
            }
            came.extend_from_slice(&reply.body);
            at = next;
        }
        Ok(came)
    }
}
