//! Copying: one state of a collection, sealed as it is, goes to another place. It takes no key.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::change::{
    BLOBS, CONSUMED, Change, EVALUATION, KEY_PAIR, NewSegment, ROUTING, STATE, StoredSegment,
};
use crate::clusters::table::SLOTS;
use crate::error::{Error, Result};
use crate::gathered::gathered;
use crate::host::{Host, Progress};
use crate::store::{CollectionStore, Database, Lineages};

/// How often a collection that others change is copied anew.
const TURNS: usize = 3;

/// Collections of one client, and what its keys say of the one that is copied.
pub type Place<'a> = (&'a dyn Database, &'a dyn Fn() -> Lineages);

/// Copies a collection from one place to another; its rows.
pub async fn copy(
    host: &dyn Host,
    name: &str,
    source: Place<'_>,
    target: Place<'_>,
) -> Result<u64> {
    let opened = async || source.0.open_beside(host, name, (source.1)()).await;
    for turn in 1.. {
        let store = opened().await?;
        let version = store.listing().version;
        match copied(host, &*store, name, target).await {
            // Others write to it, and bytes of the state that was being copied are gone.
            Err(Error::Corrupt(_) | Error::Conflict(_))
                if turn < TURNS && opened().await?.listing().version != version => {}
            done => return done,
        }
    }
    Ok(0)
}

async fn copied(
    host: &dyn Host,
    source: &dyn CollectionStore,
    name: &str,
    target: Place<'_>,
) -> Result<u64> {
    let listing = source.listing();
    let mut beside = BTreeMap::new();
    for attachment in [EVALUATION, KEY_PAIR, ROUTING, SLOTS[0], SLOTS[1], CONSUMED, STATE] {
        if source.has_attachment(attachment) {
            beside.insert(attachment, source.attachment(host, attachment).await?);
        }
    }
    let meta = listing.meta.to_vec();
    let made = target.0.create(host, name, meta, beside, (target.1)()).await?;
    let segments: Vec<_> = listing.segments.values().cloned().collect();
    match filled(host, source, &segments, &*made).await {
        Ok(()) => Ok(segments.iter().map(|one| one.live() as u64).sum()),
        Err(error) => {
            drop(made);
            // What stopped the copy is what is told.
            let _ = target.0.delete(host, name).await;
            Err(error)
        }
    }
}

async fn filled(
    host: &dyn Host,
    source: &dyn CollectionStore,
    segments: &[Arc<StoredSegment>],
    made: &dyn CollectionStore,
) -> Result<()> {
    let total = segments.iter().flat_map(|one| one.blobs.values()).sum();
    let mut done = 0;
    for segment in segments {
        if let Some(other) = segment.blobs.keys().find(|one| !BLOBS.contains(&one.as_str())) {
            return Err(Error::Version(format!(
                "segment {} has a blob {other:?}, of which this ciphervec knows nothing. Upgrade it.",
                segment.id
            )));
        }
        let mut blobs = IndexMap::new();
        for blob in BLOBS.into_iter().filter(|blob| segment.has(blob)) {
            blobs.insert(blob, source.read(host, segment.id, blob).await?);
        }
        let (id, rows) = (segment.id, segment.rows);
        let add = vec![NewSegment { id, rows, blobs, deleted: Vec::new() }];
        made.commit(host, &Change { add, ..Change::default() }).await?;
        done += segment.blobs.values().sum::<u64>();
        host.progress(Progress { phase: "upload", done, total: Some(total), ms: None });
        host.check()?;
    }
    let gone = segments.iter().filter(|one| !one.deleted.is_empty());
    let delete_rows: BTreeMap<_, _> = gathered(gone.map(|one| (one.id, one.deleted.clone())));
    match delete_rows.is_empty() {
        true => Ok(()),
        false => made.commit(host, &Change { delete_rows, ..Change::default() }).await,
    }
}
