//! Decrypts the rows of segments, at unit length or with their norms. Owner only.

use super::SegmentHead;
use super::directory::SegmentDirectory;
use super::form::{self, StoredRows, expect_key};
use super::owner::Owner;
use super::root_key::SegmentRootKey;
use super::segment::HEADROOM;
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::protect::sidecar::{Sidecar, associated_data};
use ciphervec_he_secret::wire::Kind;
use std::borrow::Cow;
use std::sync::Arc;

/// What the owner knows of a segment. Which rows are gone it knows from its own deletions; what a frame says of that is the
/// server's word.
struct Known<'a> {
    witness: &'a [u8],
    deleted: &'a [bool],
}

impl Known<'_> {
    /// Whether the rows that are not `there` may be missing: of a segment without check sums those that are deleted, of
    /// another none, since its sums are of all of them.
    fn may_lack(&self, there: &[bool]) -> bool {
        let deleted = self.deleted.iter().chain(std::iter::repeat(&false));
        self.witness.is_empty()
            && there.iter().zip(deleted).all(|(there, deleted)| *there || *deleted)
    }
}

impl Owner {
    /// Decrypts a segment's rows, row-major, with the norm they came with, which only `ip` and `l2` keep; otherwise they
    /// have unit length. The sidecar says what was sealed.
    ///
    /// In the compact form each coordinate is what was rounded when it was sealed, off by at most half a quantisation
    /// step, and sealing it again changes nothing, but in precision `wide`, whose steps are finer than the float32 that
    /// is returned here: scores may move by 2e-8. In the ring form, and of segments sealed before version 0.2, noise comes
    /// on top (`docs/sealed.md`): those rows are for the owner alone.
    ///
    /// # Errors
    /// Damaged bytes, another index, another key; [`crate::Error::Tampered`] for words other than were sealed.
    pub fn unseal(&self, segment: &[u8], sidecar: &[u8]) -> Result<Vec<f32>> {
        let id = SegmentHead::read(self.spec(), segment)?.id;
        let place = associated_data(&self.spec().binding(), &id.0);
        let sidecar = Sidecar::open(self.aead(), &place, sidecar)?;
        let known = Known { witness: &sidecar.witness, deleted: &[] };
        let mut rows = self.decrypt_unit(segment, None, self.root(), &known)?;
        for (row, &norm) in rows.chunks_exact_mut(self.spec().dimension()).zip(&sidecar.norms) {
            row.iter_mut().for_each(|value| *value *= norm);
            row.iter_mut().zip(&sidecar.centre).for_each(|(value, &c)| *value += c);
        }
        Ok(rows)
    }

    /// Some rows of a segment at unit length, less the segment's centre, in the order given, or all of them. What stands for deleted rows that a server of
    /// release 0.1 has taken out is noise. The segment is one that `directory` knows, whoever sealed it. The additively
    /// homomorphic schemes decrypt little more than these rows; the others are as fast for all.
    ///
    /// # Errors
    /// Those of [`Self::unseal`], rows that are missing and not deleted among them; [`crate::Error::Range`] for a row that is not there; a segment that `directory` does not
    /// know, or that is in quarantine.
    pub fn unseal_rows(
        &self,
        segment: &[u8],
        rows: Option<&[usize]>,
        directory: &SegmentDirectory,
    ) -> Result<Vec<f32>> {
        let id = SegmentHead::read(self.spec(), segment)?.id;
        if directory.quarantined().contains(&id) {
            return Err(Error::Quarantined(id));
        }
        let root = directory.root(id).map_or(self.root(), Arc::as_ref);
        let Some(entry) = directory.entry(id) else {
            let key = SegmentHead::read(self.spec(), segment)?.key;
            expect_key(Kind::Segment.as_str(), self.form().segment_key(root)?, key)?;
            let detail = "it is not attached, and without its sidecar its rows do not open";
            let (segment, detail) = (id.to_string(), detail.to_owned());
            return Err(Error::Directory { segment, detail });
        };
        let known = Known { witness: &entry.sidecar.witness, deleted: &entry.deleted };
        self.decrypt_unit(segment, rows, root, &known)
    }

    fn decrypt_unit(
        &self,
        segment: &[u8],
        wanted: Option<&[usize]>,
        root: &SegmentRootKey,
        known: &Known<'_>,
    ) -> Result<Vec<f32>> {
        let head = SegmentHead::read(self.spec(), segment)?;
        expect_key(Kind::Segment.as_str(), self.form().segment_key(root)?, head.key)?;
        let Spread { words, there } = words(self.spec(), &head, segment)?;
        if there.is_some_and(|there| !known.may_lack(&there)) {
            return Err(Error::Tampered { segments: vec![head.id] });
        }
        let stored = StoredRows { head: &head, words: &words, witness: known.witness };
        self.form().decrypt_rows(root, &stored, wanted)
    }
}

/// The words of all rows of a segment, zeros for rows that were taken out.
struct Spread<'a> {
    words: Cow<'a, [u8]>,
    /// Which rows are there, where that is not all.
    there: Option<Vec<bool>>,
}

/// Spreads the words of a segment whose head [`SegmentHead::read`] gave.
fn words<'a>(spec: &IndexSpec, head: &SegmentHead, bytes: &'a [u8]) -> Result<Spread<'a>> {
    let data = &bytes[HEADROOM..];
    let kept = head.read_kept(data)?;
    Ok(match (kept, form::of(spec).pruned()) {
        (Some(kept), Some(pruned)) => {
            let words = &data[head.bitmap_len()..];
            let words = Cow::Owned(pruned.spread(words, spec.dimension(), &kept));
            Spread { words, there: Some(kept) }
        }
        _ => Spread { words: Cow::Borrowed(data), there: None },
    })
}
