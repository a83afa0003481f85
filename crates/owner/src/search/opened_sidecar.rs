//! Opening sidecars, on all threads, for the directory to take in. Owner only.

use super::owner::Owner;
use super::root_key::SegmentRootKey;
use crate::error::{Error, Result};
use crate::protect::consumed::Written;
use crate::protect::sidecar::{Sidecar, associated_data};
use ciphervec_arith::parallel::*;
use ciphervec_he_secret::lattice::SegmentId;
use std::sync::Arc;

/// Who sealed a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The owner, under its present key.
    Owner,
    /// The owner, under the key before a rotation that is under way.
    Previous,
    /// A writer, by the name on its card.
    Writer(String),
}

/// A sidecar as a store keeps it.
#[derive(Clone, Copy, Debug)]
pub struct SealedSidecar<'a> {
    /// Of this segment.
    pub segment: SegmentId,
    /// Its bytes.
    pub sidecar: &'a [u8],
    /// The wrapped key, if a writer sealed the segment.
    pub wrap: Option<&'a [u8]>,
    /// The rows that the store lists, where it lists the segment: opening fails where others were sealed.
    pub rows: Option<u32>,
}

/// A sidecar that was opened, and whose it is.
pub struct OpenedSidecar {
    pub(super) id: SegmentId,
    pub(super) sidecar: Sidecar,
    /// The key that the segment is sealed under, where that is not the owner's.
    pub(super) root: Option<Arc<SegmentRootKey>>,
    pub(super) origin: Origin,
    /// Of a writer's.
    pub(super) written: Option<Written>,
}

impl OpenedSidecar {
    /// Whether a writer sealed the segment.
    pub fn is_written(&self) -> bool {
        self.written.is_some()
    }
}

impl Owner {
    /// Opens the sidecar of a segment; `wrap` is the key of one that a writer sealed.
    ///
    /// # Errors
    /// Damaged bytes, another key, segment or index.
    pub fn open_sidecar(
        &self,
        id: SegmentId,
        sidecar: &[u8],
        wrap: Option<&[u8]>,
    ) -> Result<OpenedSidecar> {
        let place = associated_data(&self.spec().binding(), &id.0);
        let open = |aead| Sidecar::open(aead, &place, sidecar);
        if let Some(wrap) = wrap {
            let (root, written) = self.unwrap_key(id, wrap)?;
            let sidecar = open(root.aead())?;
            let origin = Origin::Writer(written.writer.clone());
            let (root, written) = (Some(Arc::new(root)), Some(written));
            return Ok(OpenedSidecar { id, sidecar, root, origin, written });
        }
        let (sidecar, root, origin) = match (open(self.aead()), self.previous()) {
            (Err(error), Some(previous)) => {
                let sidecar = open(previous.aead()).map_err(|_| error)?;
                (sidecar, Some(Arc::clone(previous)), Origin::Previous)
            }
            (opened, _) => (opened?, None, Origin::Owner),
        };
        Ok(OpenedSidecar { id, sidecar, root, origin, written: None })
    }

    /// As [`Self::open_sidecar`] of each, on all threads.
    pub fn open_sidecars(&self, sealed: &[SealedSidecar<'_>]) -> Vec<Result<OpenedSidecar>> {
        let opened = sealed.par_iter();
        let checked = opened.map(|one| {
            let opened = self.open_sidecar(one.segment, one.sidecar, one.wrap)?;
            expect_rows(&opened, one.rows)?;
            Ok(opened)
        });
        checked.collect()
    }
}

/// A row that is listed and not there would be deleted with those that are.
fn expect_rows(opened: &OpenedSidecar, listed: Option<u32>) -> Result<()> {
    let there = opened.sidecar.rows;
    if listed.is_none_or(|listed| listed == there) {
        return Ok(());
    }
    Err(Error::Directory {
        segment: opened.id.to_string(),
        detail: format!(
            "it is listed with {} rows, and {there} were sealed",
            listed.unwrap_or_default()
        ),
    })
}
