//! The owner's half: float rows enter, sealed segments and sidecars leave; segments enter, approximate rows leave.

use super::additive::KeyPair;
use super::secrets::SegmentSecrets;
use super::segment::{HEADROOM, MAX_ROWS, SegmentHead, data};
use crate::aead::AeadKey;
use crate::error::{Error, Result};
use crate::id::Id;
use crate::keys::Keys;
use crate::packing::bulk_layout;
use crate::quantize::{check, plaintext_scale, vector_scale};
use crate::sidecar::{Sidecar, associated_data};
use crate::{IndexSpec, Metric, Mode, filter};
use ciphervec_arith::AlignedBytes;
use ciphervec_he::keys::{MasterKey, Purpose, Secret, random_bytes};
use ciphervec_he::sealed::compact::{self, Compact};
use ciphervec_he::sealed::ring::{self, Layout, QueryKey, Ring};
use ciphervec_he::sealed::{SegmentId, nonce};
use ciphervec_he::wire::{KeyId, Kind};
use std::sync::{Arc, Mutex, OnceLock};

/// The tables and masks of the scheme an index uses.
pub(super) enum Engine {
    Open,
    Compact {
        scheme: Compact,
        masks: compact::Masks,
    },
    Ring {
        ring: Box<Ring>,
        masks: ring::Masks,
    },
    /// Empty until the index's key pair is generated or opened.
    Additive(OnceLock<Box<dyn KeyPair>>),
}

/// Everything that needs a secret, for one index.
pub struct Owner {
    spec: IndexSpec,
    master: Arc<MasterKey>,
    key: KeyId,
    aead: AeadKey,
    filter: Secret,
    ids: Secret,
    pub(super) engine: Engine,
    query_keys: Mutex<Vec<Arc<QueryKey>>>,
}

/// What one sealing call made: the server gets `segment`, and `sidecar` to keep for the owner.
pub struct SealedSegment {
    /// The segment's name, which is its nonce.
    pub id: SegmentId,
    /// Vectors sealed.
    pub rows: u32,
    /// The level it is packed for.
    pub level: u8,
    /// The framed segment.
    pub segment: AlignedBytes,
    /// Ids and norms, encrypted.
    pub sidecar: Vec<u8>,
}

impl core::fmt::Debug for Owner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Owner({:?}, key {}, redacted)", self.spec, self.key)
    }
}

impl Owner {
    /// The owner of `spec` under `keys`. In mode `open` the keys are replaced by [`Keys::public`]: nothing is secret there.
    ///
    /// # Errors
    /// If the parameters were refused.
    pub fn new(keys: &Keys, spec: IndexSpec) -> Result<Self> {
        let public = Keys::public();
        let keys = if spec.mode() == Mode::Open { &public } else { keys };
        let binding = spec.binding();
        let derive = |purpose| keys.master.derive(purpose, &[&binding]);
        let engine = match spec.mode() {
            _ if spec.scheme().is_additive() => Engine::Additive(OnceLock::new()),
            Mode::Open => Engine::Open,
            Mode::SealedIndex => {
                let scheme = Compact::new(spec.precision().form())?;
                let masks = compact::Masks::new(&scheme, keys.mask_seed(&spec), spec.dimension());
                Engine::Compact { scheme, masks }
            }
            Mode::SealedQuery | Mode::Sealed => Engine::Ring {
                ring: Box::new(Ring::new()?),
                masks: ring::Masks::new(keys.mask_seed(&spec), spec.dimension()),
            },
        };
        Ok(Owner {
            key: keys.key_id(),
            aead: AeadKey::new(*derive(Purpose::Aead).expose()),
            filter: derive(Purpose::Filter),
            ids: derive(Purpose::Id),
            master: Arc::clone(&keys.master),
            engine,
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
        self.key
    }

    /// The key of sidecars and records.
    pub fn aead(&self) -> &AeadKey {
        &self.aead
    }

    /// The key of the ids' keyed hashes.
    pub fn id_key(&self) -> &[u8; 32] {
        self.ids.expose()
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
        let checked = check(&self.spec, rows)?;
        if checked.len() != ids.len() {
            return Err(Error::IdCount { rows: checked.len(), ids: ids.len() });
        }
        if ids.is_empty() || ids.len() > MAX_ROWS {
            return Err(Error::Range {
                what: "rows to seal",
                expected: format!("1 to {MAX_ROWS}"),
                actual: ids.len().to_string(),
            });
        }
        ids.iter().try_for_each(Id::validate)?;
        let mut seen = std::collections::HashSet::with_capacity(ids.len());
        if let Some(repeated) = ids.iter().find(|id| !seen.insert(*id)) {
            return Err(Error::DuplicateId(repeated.clone()));
        }
        let binding = self.spec.binding();
        let plaintext = || checked.quantise(plaintext_scale(&self.spec));
        let (id, level, words) = match &self.engine {
            Engine::Open => {
                let id = nonce::draw(&self.master, &binding, &plaintext())?;
                (id, 0, checked.unit_words(HEADROOM))
            }
            Engine::Compact { scheme, masks } => {
                let (id, words) =
                    compact::seal(scheme, masks, &self.master, &binding, &plaintext())?;
                (id, 0, words)
            }
            // Every ciphertext has noise of its own: the id is a name here and no nonce.
            Engine::Additive(_) => {
                let vectors = self.key_pair()?.encrypt(&self.spec, rows)?;
                let mut words = AlignedBytes::zeroed(HEADROOM + vectors.len());
                words[HEADROOM..].copy_from_slice(&vectors);
                (SegmentId(random_bytes()?), 0, words)
            }
            Engine::Ring { ring, masks } => {
                let plaintext = plaintext();
                let layout = self.layout(ring, ids.len(), expected_rows)?;
                let (id, words) = if self.spec.mode() == Mode::Sealed {
                    ring::seal(ring, masks, &self.master, &binding, &layout, &plaintext)?
                } else {
                    let id = nonce::draw(&self.master, &binding, &plaintext)?;
                    (id, ring::pack(ring, &layout, &plaintext))
                };
                (id, layout.level(), words)
            }
        };
        let head = SegmentHead { id, rows: ids.len() as u32, level, key: self.segment_key()? };
        let norms = match self.spec.metric() {
            Metric::InnerProduct | Metric::L2 => {
                checked.norms.iter().map(|&norm| norm as f32).collect()
            }
            Metric::Cosine | Metric::Hamming => Vec::new(),
        };
        let sidecar = Sidecar { ids: ids.to_vec(), norms, level, rows: head.rows };
        let sidecar = sidecar.seal(&self.aead, &associated_data(&binding, &id.0))?;
        Ok(SealedSegment {
            id,
            rows: head.rows,
            level,
            segment: head.frame(&self.spec, words),
            sidecar,
        })
    }

    /// The level for `rows` of an index that will hold `expected`: the index's own once a block of it is full, and never one
    /// that would be mostly padding.
    fn layout(&self, ring: &Ring, rows: usize, expected: usize) -> Result<Layout> {
        let bulk = bulk_layout(&self.spec, ring, expected.max(rows))?;
        if rows >= bulk.vectors_per_block() {
            Ok(bulk)
        } else {
            bulk_layout(&self.spec, ring, rows)
        }
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
        let mut rows = self.unseal_unit(segment, None)?;
        if let Some(sidecar) = sidecar {
            let id = SegmentHead::read(&self.spec, segment)?.id;
            let sidecar =
                Sidecar::open(&self.aead, &associated_data(&self.spec.binding(), &id.0), sidecar)?;
            for (row, &norm) in rows.chunks_exact_mut(self.spec.dimension()).zip(&sidecar.norms) {
                row.iter_mut().for_each(|value| *value *= norm);
            }
        }
        Ok(rows)
    }

    /// Some rows of a segment at unit length, in the order given. The additively homomorphic schemes decrypt little more
    /// than these; the others are as fast for all.
    ///
    /// # Errors
    /// Those of [`Self::unseal`]; [`Error::Range`] for a row that is not there.
    pub fn unseal_rows(&self, segment: &[u8], rows: &[usize]) -> Result<Vec<f32>> {
        if let Engine::Additive(_) = &self.engine {
            return self.unseal_unit(segment, Some(rows));
        }
        let all = self.unseal_unit(segment, None)?;
        let dimension = self.spec.dimension();
        let mut found = Vec::with_capacity(rows.len() * dimension);
        for &row in rows {
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
    fn unseal_unit(&self, segment: &[u8], wanted: Option<&[usize]>) -> Result<Vec<f32>> {
        let head = SegmentHead::read(&self.spec, segment)?;
        let expected = self.segment_key()?;
        if head.key != expected {
            let what = Kind::Segment.as_str();
            return Err(ciphervec_he::Error::WrongKey { what, expected, actual: head.key }.into());
        }
        let (words, rows) = (data(segment), head.rows as usize);
        if let Engine::Additive(_) = &self.engine {
            let rows = self.key_pair()?.open_rows(&self.spec, head.rows, words, wanted)?;
            return Ok(rows.iter().map(|&value| value as f32).collect());
        }
        let secrets = self.secrets(head.id, rows, head.level)?;
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

    /// The key that segments say they are encrypted under.
    fn segment_key(&self) -> Result<KeyId> {
        Ok(match (&self.engine, self.spec.mode().encrypts_index()) {
            (Engine::Additive(_), _) => self.key_pair()?.key_id(),
            (_, true) => self.key,
            (_, false) => KeyId::default(),
        })
    }

    /// The secrets of one segment.
    pub(super) fn secrets(&self, id: SegmentId, rows: usize, level: u8) -> Result<SegmentSecrets> {
        let binding = self.spec.binding();
        Ok(match (&self.engine, self.spec.mode()) {
            (Engine::Compact { scheme, .. }, _) => SegmentSecrets::Compact(
                compact::SegmentKey::derive(scheme, &self.master, &binding, id, rows),
            ),
            (Engine::Ring { ring, .. }, Mode::Sealed) => {
                let layout = Layout::new(self.spec.dimension(), level)?;
                SegmentSecrets::Ring(ring::SegmentKey::derive(
                    ring,
                    &self.master,
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
        let key = Arc::new(QueryKey::derive(ring, &self.master, &self.spec.binding(), epoch));
        keys.push(Arc::clone(&key));
        key
    }
}
