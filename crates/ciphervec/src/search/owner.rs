//! The owner's half: float rows enter, sealed segments and sidecars leave; segments enter, approximate rows leave.

use super::catalogue::Catalogue;
use super::custody::Custody;
use super::root::Root;
use super::seal::{Engine, Means, SealedSegment, seal};
use super::secrets::SegmentSecrets;
use super::segment::{SegmentHead, words};
use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::protect::aead::AeadKey;
use crate::protect::filter;
use crate::protect::id::Id;
use crate::protect::sidecar::{Sidecar, associated_data};
use crate::quantize::vector_scale;
use crate::{IndexSpec, Metric, Mode};
use ciphervec_he::keys::{Purpose, Secret};
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::lattice::compact;
use ciphervec_he::lattice::ring::{self, Binding, EvaluationKeys, Layout, QueryKey, Ring};
use ciphervec_he::wire::{KeyId, Kind};
use std::sync::{Arc, Mutex};

/// Everything that needs a secret, for one index.
pub struct Owner {
    spec: IndexSpec,
    root: Root,
    /// The owner's root key before a rotation that is under way.
    previous: Option<Arc<Root>>,
    filter: Secret,
    mask_seed: [u8; 32],
    pub(super) engine: Engine,
    query_keys: Mutex<Vec<Arc<QueryKey>>>,
}

impl core::fmt::Debug for Owner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Owner({:?}, key {}, redacted)", self.spec, self.key_id())
    }
}

impl Owner {
    /// The owner of `spec` under `keys`. In mode `open` the keys are replaced by [`Keys::public`]: nothing is secret there.
    ///
    /// # Errors
    /// If the parameters were refused.
    pub fn new(keys: &Keys, spec: IndexSpec) -> Result<Self> {
        Self::with_custody(keys, spec, &Custody::default())
    }

    /// The same for an index whose keys were changed, or are being changed.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_custody(keys: &Keys, spec: IndexSpec, custody: &Custody<'_>) -> Result<Self> {
        let public = Keys::public();
        let keys = if spec.mode() == Mode::Open { &public } else { keys };
        let mask_seed = custody.mask_seed.unwrap_or_else(|| keys.mask_seed(&spec));
        let root = |keys: &Keys| Root::new(Arc::clone(&keys.master), keys.key_id(), &spec);
        Ok(Owner {
            root: root(keys),
            previous: custody.previous.map(|keys| Arc::new(root(keys))),
            filter: keys.master.derive(Purpose::Filter, &[&spec.binding()]),
            mask_seed,
            engine: Engine::new(&spec, mask_seed)?,
            query_keys: Mutex::new(Vec::new()),
            spec,
        })
    }

    /// The description.
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// The public name of the keys in use.
    pub fn key_id(&self) -> KeyId {
        self.root.key_id()
    }

    /// The owner's root key, which its own segments are sealed under.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The root key before a rotation that is under way.
    pub fn previous(&self) -> Option<&Arc<Root>> {
        self.previous.as_ref()
    }

    /// The key of the owner's own sidecars and records.
    pub fn aead(&self) -> &AeadKey {
        self.root.aead()
    }

    /// The key of the ids' keyed hashes.
    pub fn id_key(&self) -> &[u8; 32] {
        self.root.id_key()
    }

    /// The seed of the public masks.
    pub fn mask_seed(&self) -> &[u8; 32] {
        &self.mask_seed
    }

    /// What a server needs to answer encrypted queries of `epoch`; `None` in the modes whose queries are plain.
    ///
    /// # Errors
    /// If the operating system's generator fails.
    pub fn evaluation(&self, epoch: u32) -> Result<Option<EvaluationKeys>> {
        let Engine::Ring { ring, .. } = &self.engine else { return Ok(None) };
        let key = self.query_key(ring, epoch);
        let binding = Binding { index: self.spec.id(), mask_seed: self.mask_seed };
        let dimension = self.spec.dimension();
        Ok(Some(EvaluationKeys::generate(ring, &key, self.key_id(), binding, dimension)?))
    }

    /// The keyed hash of a filterable field's value: equal values have equal tags, and that is what the server sees.
    pub fn filter_tag(&self, field: &str, value: &[u8]) -> filter::FilterTag {
        filter::tag(self.filter.expose(), field, value)
    }

    /// Seals rows (row-major, `ids.len() × dimension`) under a nonce that is drawn now and never again.
    ///
    /// # Errors
    /// Rows that fail the checks, another number of ids than rows, an id given twice, no rows, or too many.
    pub fn seal(&self, rows: &[f32], ids: &[Id]) -> Result<SealedSegment> {
        self.seal_expecting(rows, ids, ids.len())
    }

    /// As [`Self::seal`], packed for an index that will hold `expected_rows`: bulk loads in several segments want the
    /// level that suits their sum.
    ///
    /// # Errors
    /// As [`Self::seal`].
    pub fn seal_expecting(
        &self,
        rows: &[f32],
        ids: &[Id],
        expected_rows: usize,
    ) -> Result<SealedSegment> {
        let Engine::Additive(_) = &self.engine else {
            let means = Means::Engine(&self.engine);
            return seal(&self.spec, &self.root, &means, rows, ids, expected_rows);
        };
        let pair = self.key_pair()?;
        let encrypt = |rows: &[f32]| pair.encrypt(&self.spec, rows);
        let means = Means::Pair(&encrypt, pair.key_id());
        seal(&self.spec, &self.root, &means, rows, ids, expected_rows)
    }

    /// Decrypts a segment's rows, row-major, for the owner alone: to re-seal them, or to show an approximation. Without the
    /// segment's `sidecar` they have unit length, with it the norm they came with (which only `ip` and `l2` keep).
    ///
    /// Each coordinate is off by at most half a quantisation step plus the noise (`docs/sealed.md`); re-sealing adds as
    /// much again.
    ///
    /// # Errors
    /// Damaged bytes, another index, another key.
    pub fn unseal(&self, segment: &[u8], sidecar: Option<&[u8]>) -> Result<Vec<f32>> {
        let mut rows = self.unseal_unit(segment, None, &self.root)?;
        if let Some(sidecar) = sidecar {
            let id = SegmentHead::read(&self.spec, segment)?.id;
            let place = associated_data(&self.spec.binding(), &id.0);
            let sidecar = Sidecar::open(self.root.aead(), &place, sidecar)?;
            for (row, &norm) in rows.chunks_exact_mut(self.spec.dimension()).zip(&sidecar.norms) {
                row.iter_mut().for_each(|value| *value *= norm);
            }
        }
        Ok(rows)
    }

    /// Some rows of a segment at unit length, in the order given, or all of them. What stands for deleted rows that a server
    /// has taken out is noise. The segment is one that `catalogue`
    /// knows, whoever sealed it, or the owner's own. The additively homomorphic schemes decrypt little more than these
    /// rows; the others are as fast for all.
    ///
    /// # Errors
    /// Those of [`Self::unseal`]; [`Error::Range`] for a row that is not there.
    pub fn unseal_rows(
        &self,
        segment: &[u8],
        rows: Option<&[usize]>,
        catalogue: &Catalogue,
    ) -> Result<Vec<f32>> {
        let root = catalogue.root(SegmentHead::read(&self.spec, segment)?.id);
        let root = root.map_or(&self.root, Arc::as_ref);
        let Some(wanted) = rows else { return self.unseal_unit(segment, None, root) };
        if let Engine::Additive(_) = &self.engine {
            return self.unseal_unit(segment, Some(wanted), root);
        }
        let all = self.unseal_unit(segment, None, root)?;
        let dimension = self.spec.dimension();
        let mut found = Vec::with_capacity(wanted.len() * dimension);
        for &row in wanted {
            let one = all.chunks_exact(dimension).nth(row).ok_or_else(|| Error::Range {
                what: "a row to unseal",
                expected: format!("below {}", all.len() / dimension),
                actual: row.to_string(),
            })?;
            found.extend_from_slice(one);
        }
        Ok(found)
    }

    /// `wanted` rows only under the additively homomorphic schemes.
    fn unseal_unit(
        &self,
        segment: &[u8],
        wanted: Option<&[usize]>,
        root: &Root,
    ) -> Result<Vec<f32>> {
        let head = SegmentHead::read(&self.spec, segment)?;
        let expected = match (&self.engine, self.spec.mode().encrypts_index()) {
            (Engine::Additive(_), _) => self.key_pair()?.key_id(),
            (_, true) => root.key_id(),
            (_, false) => KeyId::default(),
        };
        if head.key != expected {
            let what = Kind::Segment.as_str();
            return Err(ciphervec_he::Error::WrongKey { what, expected, actual: head.key }.into());
        }
        let (words, rows) = (words(&self.spec, &head, segment)?, head.rows as usize);
        let words = words.as_ref();
        if let Engine::Additive(_) = &self.engine {
            let rows = self.key_pair()?.open_rows(&self.spec, head.rows, words, wanted)?;
            return Ok(rows.iter().map(|&value| value as f32).collect());
        }
        let secrets = self.secrets(root, head.id, rows, head.level)?;
        let integers = match (&self.engine, &secrets) {
            (Engine::Compact { scheme, masks }, SegmentSecrets::Compact(key)) => {
                compact::unseal(scheme, masks, key, words, rows)
            }
            (Engine::Ring { ring, masks }, secrets) => {
                let layout = Layout::new(self.spec.dimension(), head.level)?;
                let secrets = match secrets {
                    SegmentSecrets::Ring(key) => Some((masks, key)),
                    _ => None,
                };
                ring::unseal(ring, &layout, secrets, words, rows)?
            }
            _ => words
                .as_chunks::<4>()
                .0
                .iter()
                .map(|word| f64::from(f32::from_le_bytes(*word)))
                .collect(),
        };
        let inverse = 1.0 / vector_scale(&self.spec);
        if self.spec.metric() == Metric::Hamming {
            return Ok(integers
                .iter()
                .map(|&value| if value < 0.0 { -1.0 } else { 1.0 })
                .collect());
        }
        Ok(integers.iter().map(|&value| (value * inverse) as f32).collect())
    }

    /// The secrets of one segment.
    pub(super) fn secrets(
        &self,
        root: &Root,
        id: SegmentId,
        rows: usize,
        level: u8,
    ) -> Result<SegmentSecrets> {
        let binding = self.spec.binding();
        Ok(match (&self.engine, self.spec.mode()) {
            (Engine::Compact { scheme, .. }, _) => SegmentSecrets::Compact(
                compact::SegmentKey::derive(scheme, root.master(), &binding, id, rows),
            ),
            (Engine::Ring { ring, .. }, Mode::Sealed) => {
                let layout = Layout::new(self.spec.dimension(), level)?;
                SegmentSecrets::Ring(ring::SegmentKey::derive(
                    ring,
                    root.master(),
                    &binding,
                    id,
                    &layout,
                    rows,
                ))
            }
            _ => SegmentSecrets::None,
        })
    }

    /// The query key of an epoch, derived once.
    pub(super) fn query_key(&self, ring: &Ring, epoch: u32) -> Arc<QueryKey> {
        let mut keys = self.query_keys.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(key) = keys.iter().find(|key| key.epoch() == epoch) {
            return Arc::clone(key);
        }
        let key = Arc::new(QueryKey::derive(ring, self.root.master(), &self.spec.binding(), epoch));
        keys.push(Arc::clone(&key));
        key
    }
}
