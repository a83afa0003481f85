//! The server's half: segments, filter tags and evaluation keys enter, what queries are answered from leaves. It cannot name a
//! secret key.

use super::additive::{Evaluator, read_public_key};
use super::held::{Chosen, Held, Rows, SegmentSource};
use super::segment::{Segment, SegmentHead};
use crate::IndexSpec;
use crate::error::{Error, Result};
use crate::protect::filter::{FilterTag, FilterTags};
use ciphervec_arith::AlignedBytes;
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::lattice::ring::{EvaluationKeys, Masks, Ring};
use ciphervec_he::wire::{KeyId, Kind};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// One index as the server holds it: segments, filter tags and evaluation keys. A clone shares all of them, so that the next
/// state is made beside the one that queries are still being answered from.
#[derive(Clone)]
pub struct ServerIndex {
    spec: IndexSpec,
    pub(super) ring: Option<Arc<Ring>>,
    pub(super) masks: Option<Arc<Masks>>,
    pub(super) keys: BTreeMap<u32, Arc<EvaluationKeys>>,
    public: Option<Arc<dyn Evaluator>>,
    segments: Vec<Arc<Held>>,
    ids: HashSet<[u8; 16]>,
}

impl ServerIndex {
    /// An empty index.
    ///
    /// # Errors
    /// If the parameters were refused.
    pub fn new(spec: IndexSpec) -> Result<Self> {
        let ring = if spec.mode().encrypts_queries() { Some(Arc::new(Ring::new()?)) } else { None };
        Ok(ServerIndex {
            spec,
            ring,
            masks: None,
            keys: BTreeMap::new(),
            public: None,
            segments: Vec::new(),
            ids: HashSet::new(),
        })
    }

    /// The description.
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// Installs evaluation keys; those of other epochs stay until [`Self::forget_epoch`]. Under an additively homomorphic
    /// scheme they are the public key, which comes before any segment and has no epoch.
    ///
    /// # Errors
    /// Damaged bytes, another index, another key than that of the segments held, or a mode that needs no keys.
    pub fn set_evaluation_keys(&mut self, bytes: &[u8]) -> Result<u32> {
        if self.spec.scheme().is_additive() {
            let public = read_public_key(&self.spec, bytes)?;
            if let Some(held) = self.segments.first() {
                expect_key(Kind::PublicKey.as_str(), held.head.key, public.key_id())?;
            }
            self.public = Some(public.into());
            return Ok(0);
        }
        let Some(ring) = &self.ring else {
            return Err(Error::choice(
                "mode",
                "sealed or sealed-query to hold evaluation keys",
                self.spec.mode().as_str(),
            ));
        };
        let keys = EvaluationKeys::from_bytes(ring, bytes, self.spec.dimension())?;
        self.spec.expect_id(Kind::EvaluationKeys.as_str(), keys.binding().index)?;
        let mask_seed = keys.binding().mask_seed;
        if self.masks.as_ref().is_none_or(|masks| *masks.seed() != mask_seed) {
            self.masks = Some(Arc::new(Masks::new(mask_seed, self.spec.dimension())));
        }
        let epoch = keys.epoch();
        self.keys.insert(epoch, Arc::new(keys));
        Ok(epoch)
    }

    /// Drops the keys of an epoch that is over.
    pub fn forget_epoch(&mut self, epoch: u32) -> bool {
        self.keys.remove(&epoch).is_some()
    }

    /// Adds a segment without filter tags.
    ///
    /// # Errors
    /// As [`Self::add_tagged`].
    pub fn add(&mut self, bytes: AlignedBytes) -> Result<SegmentId> {
        self.add_tagged(bytes, FilterTags::new())
    }

    /// Adds a segment and the filter tags of its rows (none, or one list a row).
    ///
    /// # Errors
    /// Damaged bytes, another index, a segment that is there already, tags for another number of rows.
    pub fn add_tagged(&mut self, bytes: AlignedBytes, tags: FilterTags) -> Result<SegmentId> {
        let segment = self.parse(bytes)?;
        let (head, len) = (*segment.head(), segment.byte_len());
        self.hold(Held { head, len, tags, rows: Rows::Resident(Arc::new(segment)) })
    }

    /// Adds a segment whose rows come from `source` whenever they are needed; `len` is the length of its framed bytes.
    ///
    /// # Errors
    /// A segment that is there already, tags for another number of rows.
    pub fn add_stored(
        &mut self,
        head: SegmentHead,
        len: usize,
        tags: FilterTags,
        source: Arc<dyn SegmentSource>,
    ) -> Result<SegmentId> {
        self.hold(Held { head, len, tags, rows: Rows::Stored(source) })
    }

    fn hold(&mut self, held: Held) -> Result<SegmentId> {
        let head = held.head;
        if self.ids.contains(&head.id.0) {
            return Err(Error::DuplicateSegment(head.id.to_string()));
        }
        if held.tags.rows() != 0 && held.tags.rows() != head.rows {
            return Err(Error::Range {
                what: "rows with filter tags",
                expected: format!("0 or {}", head.rows),
                actual: held.tags.rows().to_string(),
            });
        }
        self.ids.insert(head.id.0);
        self.segments.push(Arc::new(held));
        Ok(head.id)
    }

    /// A segment of this index, without adding it, from bytes that the store has checked block by block: their checksum is
    /// not computed a second time.
    ///
    /// # Errors
    /// Another index, lengths or numbers that do not fit.
    pub fn parse_checked(&self, bytes: AlignedBytes) -> Result<Segment> {
        if self.spec.scheme().is_additive() {
            Segment::of_vectors(&self.spec, self.public()?, &bytes)
        } else {
            Segment::from_checked(&self.spec, self.ring.as_deref(), bytes)
        }
    }

    /// A segment of this index, without adding it.
    ///
    /// # Errors
    /// Damaged bytes, another index.
    pub fn parse(&self, bytes: AlignedBytes) -> Result<Segment> {
        if self.spec.scheme().is_additive() {
            Segment::of_vectors(&self.spec, self.public()?, &bytes)
        } else {
            Segment::from_bytes(&self.spec, self.ring.as_deref(), bytes)
        }
    }

    /// Drops a segment; whether it was there.
    pub fn remove(&mut self, id: SegmentId) -> bool {
        self.ids.remove(&id.0);
        let position = self.position(id);
        position.map(|index| self.segments.remove(index)).is_some()
    }

    pub(super) fn public(&self) -> Result<&dyn Evaluator> {
        self.public.as_deref().ok_or(Error::NoPublicKey)
    }

    fn position(&self, id: SegmentId) -> Option<usize> {
        self.segments.iter().position(|held| held.head.id == id)
    }

    /// The segments that are in memory whatever happens, in the order they were added.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter_map(|held| match &held.rows {
            Rows::Resident(segment) => Some(segment.as_ref()),
            Rows::Stored(_) => None,
        })
    }

    /// What the segments say of themselves, in the order they were added.
    pub fn heads(&self) -> impl Iterator<Item = &SegmentHead> {
        self.segments.iter().map(|held| &held.head)
    }

    pub(super) fn held(&self) -> impl Iterator<Item = &Held> {
        self.segments.iter().map(AsRef::as_ref)
    }

    /// Vectors held.
    pub fn rows(&self) -> usize {
        self.heads().map(|head| head.rows as usize).sum()
    }

    /// Bytes of the segments held, in memory or not.
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(|held| held.len).sum()
    }

    /// Bytes of the segments that are in memory now.
    pub fn resident(&self) -> u64 {
        let resident = self.segments.iter().filter(|held| held.is_resident());
        resident.map(|held| held.len as u64).sum()
    }

    /// The segments whose rows are not in memory now.
    pub fn missing(&self) -> impl Iterator<Item = &dyn SegmentSource> {
        self.segments.iter().filter_map(|held| match &held.rows {
            Rows::Stored(source) if !source.is_resident() => Some(&**source),
            _ => None,
        })
    }

    /// Segments with a row that carries every tag, each with its matching rows.
    pub(super) fn choose(&self, tags: &[FilterTag]) -> Vec<Chosen<'_>> {
        let every = self.segments.iter();
        every
            .filter_map(|held| {
                if tags.is_empty() {
                    return Some((&**held, None));
                }
                let matching = held.tags.matches(tags);
                matching.contains(&true).then_some((&**held, Some(matching)))
            })
            .collect()
    }
}

pub(super) fn expect_key(what: &'static str, expected: KeyId, actual: KeyId) -> Result<()> {
    if expected == actual {
        return Ok(());
    }
    Err(ciphervec_he::Error::WrongKey { what, expected, actual }.into())
}
