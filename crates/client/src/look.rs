//! Looks at what is stored, without a key: what a folder or a server shows to everybody who may read there.

use std::sync::Arc;

use ciphervec::Id;

use crate::belief::choices::check_name;
use crate::change::StoredSegment;
use crate::client::Client;
use crate::collection::Collection;
use crate::error::Result;
use crate::host::Host;
use crate::inventory::SegmentInfo;
use crate::store::Verified;

/// What is stored under a collection's name.
#[derive(Clone, Debug)]
pub struct Look {
    /// The description, sealed in part.
    pub meta: Arc<[u8]>,
    /// The number of its commit.
    pub version: u64,
    /// Oldest first.
    pub segments: Vec<SegmentInfo>,
}

impl SegmentInfo {
    /// As everybody sees it.
    pub(crate) fn of(segment: &StoredSegment) -> Self {
        SegmentInfo {
            id: segment.id.to_string(),
            rows: segment.rows,
            deleted: segment.deleted.len(),
            bytes: segment.blobs.iter().map(|(name, bytes)| (name.clone(), *bytes)).collect(),
            writer: None,
        }
    }
}

impl Client {
    /// What is stored under a name. Whatever keys this client has, none is used; beside whoever writes to it.
    ///
    /// # Errors
    /// [`crate::Error::CollectionNotFound`], [`crate::Error::Corrupt`].
    pub async fn look(&self, host: &dyn Host, name: &str) -> Result<Look> {
        check_name(name)?;
        let listing = self.beside(host, name).await?.listing();
        let segments = listing.segments.values().map(|one| SegmentInfo::of(one)).collect();
        Ok(Look { meta: Arc::clone(&listing.meta), version: listing.version, segments })
    }

    /// Has every stored block of a collection read and checked, as [`Collection::verify`] does, without a key.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] naming what is damaged.
    pub async fn verify(&self, host: &dyn Host, name: &str) -> Result<Verified> {
        check_name(name)?;
        self.beside(host, name).await?.verify(host).await
    }
}

impl Collection {
    /// The ids that are there, in the order of insertion.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn ids(&self, host: &dyn Host) -> Result<Vec<Id>> {
        let alone = self.alone(host).await?;
        Ok(alone.directory.records().map(|(id, ..)| id.clone()).collect())
    }

    /// Those of these ids that are there, each once, in the order of insertion.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn in_order(&self, host: &dyn Host, ids: &[Id]) -> Result<Vec<Id>> {
        let alone = self.alone(host).await?;
        let turns: std::collections::HashMap<_, _> =
            alone.directory.segments().enumerate().map(|(turn, (id, ..))| (id, turn)).collect();
        let placed = ids.iter().filter_map(|id| {
            let (segment, row) = alone.directory.locate(id)?;
            Some((*turns.get(&segment)?, row, id))
        });
        let mut placed: Vec<_> = placed.collect();
        placed.sort_by_key(|(turn, row, _)| (*turn, *row));
        placed.dedup_by_key(|(turn, row, _)| (*turn, *row));
        Ok(placed.into_iter().map(|(.., id)| id.clone()).collect())
    }

    /// What rows are taken less before they are sealed, empty where that is nothing; and whether it was given.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn center(&self, host: &dyn Host) -> Result<(Vec<f32>, bool)> {
        let alone = self.alone(host).await?;
        Ok((alone.center().to_vec(), !alone.description.center.is_empty()))
    }

    /// The commit that is known here; and, where a reader of a folder is behind its writer, the one that there is by now.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub async fn version(&self, host: &dyn Host) -> Result<(u64, Option<u64>)> {
        let alone = self.alone(host).await?;
        Ok((alone.store.listing().version, alone.store.newer()))
    }
}
