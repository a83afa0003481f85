//! Decrypting rows: framed segments enter, unit rows or rows with their norms leave. Owner only.

use super::directory::SegmentDirectory;
use super::form::expect_key;
use super::frame::words;
use super::owner::Owner;
use super::root_key::SegmentRootKey;
use super::segment::SegmentHead;
use crate::error::Result;
use crate::protect::sidecar::{Sidecar, associated_data};
use ciphervec_he::wire::Kind;
use std::sync::Arc;

impl Owner {
    /// Decrypts a segment's rows, row-major, for the owner alone: to re-seal them, or to show an approximation. Without the
    /// segment's `sidecar` they have unit length, with it the norm they came with (which only `ip` and `l2` keep).
    ///
    /// Each coordinate is off by at most half a quantisation step plus the noise (`docs/sealed.md`); re-sealing adds as
    /// much again.
    ///
    /// # Errors
    /// Damaged bytes, another index, another key.
    pub fn unseal(&self, segment: &[u8], sidecar: Option<&[u8]>) -> Result<Vec<f32>> {
        let mut rows = self.decrypt_unit(segment, None, self.root())?;
        if let Some(sidecar) = sidecar {
            let id = SegmentHead::read(self.spec(), segment)?.id;
            let place = associated_data(&self.spec().binding(), &id.0);
            let sidecar = Sidecar::open(self.aead(), &place, sidecar)?;
            for (row, &norm) in rows.chunks_exact_mut(self.spec().dimension()).zip(&sidecar.norms) {
                row.iter_mut().for_each(|value| *value *= norm);
            }
        }
        Ok(rows)
    }

    /// Some rows of a segment at unit length, in the order given, or all of them. What stands for deleted rows that a server
    /// has taken out is noise. The segment is one that `directory`
    /// knows, whoever sealed it, or the owner's own. The additively homomorphic schemes decrypt little more than these
    /// rows; the others are as fast for all.
    ///
    /// # Errors
    /// Those of [`Self::unseal`]; [`crate::Error::Range`] for a row that is not there.
    pub fn unseal_rows(
        &self,
        segment: &[u8],
        rows: Option<&[usize]>,
        directory: &SegmentDirectory,
    ) -> Result<Vec<f32>> {
        let root = directory.root(SegmentHead::read(self.spec(), segment)?.id);
        let root = root.map_or(self.root(), Arc::as_ref);
        self.decrypt_unit(segment, rows, root)
    }

    fn decrypt_unit(
        &self,
        segment: &[u8],
        wanted: Option<&[usize]>,
        root: &SegmentRootKey,
    ) -> Result<Vec<f32>> {
        let head = SegmentHead::read(self.spec(), segment)?;
        expect_key(Kind::Segment.as_str(), self.form().segment_key(root)?, head.key)?;
        let words = words(self.spec(), &head, segment)?;
        self.form().decrypt_rows(root, &head, &words, wanted)
    }
}
