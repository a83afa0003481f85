//! Commits on their way to a server: the largest blobs are uploaded first, and what is left goes in one frame.

use std::collections::HashMap;

use crate::change::Change;
use crate::change::Listing;
use crate::error::{Error, Result};
use crate::hex::Hex;
use crate::host::{Host, Progress};
use crate::random::random;
use crate::remote::frame::{self, Place, Upload};
use crate::remote::problem::{Reply, loses_uploads, uploads_gone};
use crate::remote::session::Call;
use crate::remote::store::{OCTETS, RemoteStore};

/// At a commit whose uploads the server lost.
const ATTEMPTS: usize = 3;

impl RemoteStore {
    pub(super) async fn send(
        &self,
        host: &dyn Host,
        change: &Change,
        inline: usize,
        on: &Listing,
        doing: &str,
    ) -> Result<Reply> {
        for _ in 0..ATTEMPTS {
            let uploads = self.upload(host, change, inline, doing).await?;
            let reply = self.post(host, change, &uploads, on, doing).await?;
            if uploads.is_empty() || !uploads_gone(&reply) {
                let all: u64 = frame::blobs(change).map(|(_, data)| data.len() as u64).sum();
                if reply.head.status == 200 {
                    host.progress(Progress {
                        phase: "upload",
                        done: all,
                        total: Some(all),
                        ms: None,
                    });
                }
                return Ok(reply);
            }
            self.kept().uploads.clear();
        }
        Err(loses_uploads(doing, &self.session.url))
    }

    async fn post(
        &self,
        host: &dyn Host,
        change: &Change,
        uploads: &HashMap<Place, Upload>,
        on: &Listing,
        doing: &str,
    ) -> Result<Reply> {
        let body = frame::encode(change, uploads);
        let headers = vec![
            ("Content-Type", OCTETS.to_owned()),
            ("If-Match", format!("\"{}\"", on.head)),
            // A retry of these bytes is known by this key, and answered as the first attempt was.
            ("Idempotency-Key", Hex(random::<16>()?).to_string()),
        ];
        let also = &[400, 404, 409, 412, 413, 422];
        let call = Call { body: Some(&body), headers, also, ..Call::default() };
        match self.session.call(host, "POST", &format!("{}/commits", self.path), doing, call).await
        {
            Ok(reply) => Ok(reply),
            Err(Error::Server { message, acted: true }) => Err(Error::CommitUncertain(format!(
                "{message} The change may have been committed, all of it, or not: look for its ids, or upsert."
            ))),
            Err(error) => Err(error),
        }
    }

    /// Uploads the largest blobs until what is left fits into a frame; where they are. An upload of an earlier attempt serves again where
    /// it holds the same bytes. Its place tells nothing: the attachments of the next attempt are other ones under the same names.
    async fn upload(
        &self,
        host: &dyn Host,
        change: &Change,
        inline: usize,
        doing: &str,
    ) -> Result<HashMap<Place, Upload>> {
        let mut parts: Vec<_> = frame::blobs(change).collect();
        let total: usize = parts.iter().map(|(_, data)| data.len()).sum();
        let mut held = HashMap::new();
        {
            let known = &mut self.kept().uploads;
            if !known.is_empty() {
                for (place, data) in &parts {
                    let upload = known.get(blake3::hash(data).as_bytes());
                    held.extend(upload.map(|upload| (*place, upload.clone())));
                }
            }
            *known = held.values().map(|upload| (upload.blake3, upload.clone())).collect();
        }
        let mut left: usize = parts
            .iter()
            .filter(|(place, _)| !held.contains_key(place))
            .map(|(_, data)| data.len())
            .sum();
        let mut sent = (total - left) as u64;
        parts.sort_by_key(|(_, data)| core::cmp::Reverse(data.len()));
        for (place, data) in parts {
            if left <= inline || data.is_empty() {
                break;
            }
            if held.contains_key(&place) {
                continue;
            }
            let step = |offset| {
                let (done, total) = (sent + offset, Some(total as u64));
                host.progress(Progress { phase: "upload", done, total, ms: None });
            };
            let path = format!("{}/uploads", self.path);
            let id = self.session.upload(host, &path, data, doing, step).await?;
            let upload = Upload { id, blake3: *blake3::hash(data).as_bytes() };
            self.kept().uploads.insert(upload.blake3, upload.clone());
            held.insert(place, upload);
            left -= data.len();
            sent += data.len() as u64;
        }
        Ok(held)
    }
}
