//! A writer's side: a card and rows make sealed segments that nobody here can open. No secret is kept.

use std::collections::HashMap;
use std::time::Duration;

use ciphervec_owner::search::{Writer as Sealer, WriterCard, WrittenSegment};
use indexmap::IndexMap;

use crate::change::{Change, NewSegment, RECORDS, ROWS, SIDECAR, WRAP};
use crate::error::{Error, Result};
use crate::hex::Hex;
use crate::host::{Host, Progress};
use crate::remote::address::{Token, base_url};
use crate::remote::frame::{self, encode};
use crate::remote::problem::{error_of, is_problem};
use crate::remote::session::{Call, Session};
use crate::replica::SEGMENT_ROWS;
use crate::replica::batch::{Batch, Records};
use crate::replica::late::encoded;
use crate::threads::heavy;

const SEGMENT_BYTES: usize = 16 << 20;
/// Times its rows that a segment is packed for at most: a server takes none that is packed for far more than it sees.
const EXPECTED: usize = 32;
const TIMEOUT: Duration = Duration::from_secs(120);
const RETRIES: u32 = 6;

/// Adds rows to a collection and reads none: what a device holds. Every segment is sealed under a key that is drawn for it, wrapped to the
/// owner and forgotten. A stolen device exposes what it is sealing at that moment, and nothing that it sealed before.
pub struct Writer(Sealer);

impl Writer {
    /// The holder of a card, as [`crate::Collection::writer_card`] gives it. `fingerprint` is that of the card which is expected.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for another card than expected; bytes that are no card.
    pub fn new(card: &[u8], fingerprint: Option<&str>) -> Result<Self> {
        let card = WriterCard::from_bytes(card)?;
        let own = card.fingerprint();
        if let Some(expected) = fingerprint.filter(|expected| *expected != own) {
            return Err(Error::Mismatch(format!(
                "the card's fingerprint is {own}, not {expected}: this is not the card that the owner made. Nothing was sealed; get the card \
                 from the owner again."
            )));
        }
        Ok(Writer(Sealer::new(card)?))
    }

    /// What it writes to, and as whom.
    pub fn card(&self) -> &WriterCard {
        self.0.card()
    }

    /// Seals rows and keeps nothing: the bytes of a batch, which can be sent again by whoever has them, and how many rows it has. The rows
    /// are added once.
    ///
    /// # Errors
    /// [`Error::Rows`] naming all that is wrong.
    pub fn seal(&self, host: &dyn Host, rows: Records) -> Result<(Vec<u8>, usize)> {
        let spec = self.card().spec();
        let dimension = spec.dimension();
        let (rows, _) = encoded(None, rows)?;
        let rows = rows.without_zeros(host, spec);
        let batch = Batch::new(rows, Vec::new(), dimension, spec.metric())?;
        let total = batch.ids.len();
        if total == 0 {
            return Error::input("there is nothing to seal: 0 ids were given.");
        }
        let step = segment_rows(dimension);
        let mut change = Change::default();
        for start in (0..total).step_by(step) {
            let part = batch.part(start, total.min(start + step), dimension);
            let expected = total.min(EXPECTED * part.ids.len());
            let now = host.clock().as_millis() as u64;
            let WrittenSegment { sealed, records, wrap } = {
                let records = part.records;
                heavy(|| self.0.seal(&part.rows, &part.ids, records, expected, now))?
            };
            let mut blobs = IndexMap::new();
            blobs.insert(ROWS, sealed.segment.to_vec().into());
            blobs.insert(SIDECAR, sealed.sidecar.into());
            blobs.extend(records.map(|records| (RECORDS, records.into())));
            blobs.insert(WRAP, wrap.into());
            let deleted = Vec::new();
            change.add.push(NewSegment { id: sealed.id, rows: sealed.rows, blobs, deleted });
            let done = (start + part.ids.len()) as u64;
            host.progress(Progress { phase: "seal", done, total: Some(total as u64), ms: None });
            host.check()?;
        }
        Ok((encode(&change, &HashMap::new()), total))
    }

    /// Adds a sealed batch to the collection, a commit for each segment. One that is there already is not added twice.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for other bytes than a batch's; what a server refuses.
    pub async fn send(
        &self,
        host: &dyn Host,
        url: &str,
        token: Option<&str>,
        insecure: bool,
        batch: &[u8],
    ) -> Result<()> {
        let token = token.map(Token::new).transpose()?;
        let session = Session::new(base_url(url, insecure)?, token, TIMEOUT, RETRIES);
        let collection = self.card().spec().collection();
        let doing = format!("cannot add to \"{collection}\"");
        let path = format!("/v1/collections/{collection}/commits");
        let added = frame::decode_added(batch)?;
        let total = added.len() as u64;
        for (i, segment) in added.into_iter().enumerate() {
            // By which a server knows the segment again; it follows from its id alone, which is drawn anew by every sealing.
            let key = blake3::hash(format!("ciphervec commit key {}", segment.id).as_bytes());
            let (key, _) = key.as_bytes().split_at(16);
            let key: String = key.iter().map(|byte| Hex([*byte]).to_string()).collect();
            let change = Change { add: vec![segment], ..Change::default() };
            let body = encode(&change, &HashMap::new());
            let headers = vec![
                ("Content-Type", "application/octet-stream".to_owned()),
                ("Idempotency-Key", key),
            ];
            let call = Call { body: Some(&body), headers, also: &[409, 422], ..Call::default() };
            let reply = session.call(host, "POST", &path, &doing, call).await?;
            // It arrived before, in these bytes or another release's.
            let arrived = is_problem(&reply, "segment-exists") || is_problem(&reply, "key-reused");
            if reply.head.status != 200 && !arrived {
                return Err(error_of(&reply, &doing, &session.url));
            }
            host.progress(Progress {
                phase: "upload",
                done: i as u64 + 1,
                total: Some(total),
                ms: None,
            });
        }
        Ok(())
    }
}

/// So few that a segment goes into one request: a vector takes at most 8 bytes a number, and the ring form pads to a power of two.
fn segment_rows(dimension: usize) -> usize {
    let padded = dimension.next_power_of_two();
    (SEGMENT_BYTES / (padded * 8)).clamp(64, SEGMENT_ROWS)
}
