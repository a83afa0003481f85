//! Sealing one segment: float rows and ids enter, framed ciphertexts and a sealed sidecar leave. Owner and writer.

use super::additive::KeyPair;
use super::root::Root;
use super::segment::{HEADROOM, MAX_ROWS, SegmentHead};
use crate::error::{Error, Result};
use crate::packing::bulk_layout;
use crate::protect::id::Id;
use crate::protect::sidecar::{Sidecar, associated_data};
use crate::quantize::{check, plaintext_scale};
use crate::{IndexSpec, Metric, Mode};
use ciphervec_arith::AlignedBytes;
use ciphervec_he::keys::random_bytes;
use ciphervec_he::lattice::compact::{self, Compact};
use ciphervec_he::lattice::ring::{self, Layout, Ring};
use ciphervec_he::lattice::{SegmentId, nonce};
use ciphervec_he::wire::KeyId;
use std::sync::OnceLock;

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
    /// Empty until the index's key pair is generated or opened; a writer has its public half elsewhere.
    Additive(OnceLock<Box<dyn KeyPair>>),
}

impl Engine {
    /// That of `spec`, under the masks of `seed`.
    ///
    /// # Errors
    /// If the parameters were refused.
    pub fn new(spec: &IndexSpec, seed: [u8; 32]) -> Result<Self> {
        Ok(match spec.mode() {
            _ if spec.scheme().is_additive() => Engine::Additive(OnceLock::new()),
            Mode::Open => Engine::Open,
            Mode::SealedIndex => {
                let scheme = Compact::new(spec.precision().form())?;
                let masks = compact::Masks::new(&scheme, seed, spec.dimension());
                Engine::Compact { scheme, masks }
            }
            Mode::SealedQuery | Mode::Sealed => Engine::Ring {
                ring: Box::new(Ring::new()?),
                masks: ring::Masks::new(seed, spec.dimension()),
            },
        })
    }
}

/// Encrypts rows, row-major, into the frame of their ciphertexts.
pub(super) type Encrypt<'a> = dyn Fn(&[f32]) -> Result<Vec<u8>> + Send + Sync + 'a;

/// How vectors are encrypted.
#[derive(Clone, Copy)]
pub(super) enum Means<'a> {
    /// By the sealed scheme, or not at all.
    Engine(&'a Engine),
    /// By an additively homomorphic scheme, under the key of this name.
    Pair(&'a Encrypt<'a>, KeyId),
}

/// Seals rows under `root`, under a nonce that is drawn now and never again.
///
/// # Errors
/// Rows that fail the checks, another number of ids than rows, an id given twice, no rows, or too many; no randomness.
pub(super) fn seal(
    spec: &IndexSpec,
    root: &Root,
    means: &Means<'_>,
    rows: &[f32],
    ids: &[Id],
    expected_rows: usize,
) -> Result<SealedSegment> {
    let checked = check(spec, rows)?;
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
    let binding = spec.binding();
    let plaintext = || checked.quantise(plaintext_scale(spec));
    let master = root.master();
    let (id, level, words) = match means {
        Means::Engine(Engine::Open) => {
            let id = nonce::draw(master, &binding, &plaintext())?;
            (id, 0, checked.unit_words(HEADROOM))
        }
        Means::Engine(Engine::Compact { scheme, masks }) => {
            let (id, words) = compact::seal(scheme, masks, master, &binding, &plaintext())?;
            (id, 0, words)
        }
        Means::Engine(Engine::Additive(_)) => return Err(Error::NoKeyPair),
        // Every ciphertext has noise of its own: the id is a name here and no nonce.
        Means::Pair(encrypt, _) => {
            let vectors = encrypt(rows)?;
            let mut words = AlignedBytes::zeroed(HEADROOM + vectors.len());
            words[HEADROOM..].copy_from_slice(&vectors);
            (SegmentId(random_bytes()?), 0, words)
        }
        Means::Engine(Engine::Ring { ring, masks }) => {
            let plaintext = plaintext();
            let layout = layout(spec, ring, ids.len(), expected_rows)?;
            let (id, words) = if spec.mode() == Mode::Sealed {
                ring::seal(ring, masks, master, &binding, &layout, &plaintext)?
            } else {
                let id = nonce::draw(master, &binding, &plaintext)?;
                (id, ring::pack(ring, &layout, &plaintext))
            };
            (id, layout.level(), words)
        }
    };
    let key = match (means, spec.mode().encrypts_index()) {
        (Means::Pair(_, key), _) => *key,
        (_, true) => root.key_id(),
        (_, false) => KeyId::default(),
    };
    let rows = ids.len() as u32;
    let head = SegmentHead { id, rows, kept: rows, level, key };
    let norms = match spec.metric() {
        Metric::InnerProduct | Metric::L2 => {
            checked.norms.iter().map(|&norm| norm as f32).collect()
        }
        Metric::Cosine | Metric::Hamming => Vec::new(),
    };
    let sidecar = Sidecar { ids: ids.to_vec(), norms, level, rows: head.rows };
    let sidecar = sidecar.seal(root.aead(), &associated_data(&binding, &id.0))?;
    Ok(SealedSegment { id, rows: head.rows, level, segment: head.frame(spec, words), sidecar })
}

/// The level for `rows` of an index that will hold `expected`: the index's own once a block of it is full, and never one
/// that would be mostly padding.
fn layout(spec: &IndexSpec, ring: &Ring, rows: usize, expected: usize) -> Result<Layout> {
    let bulk = bulk_layout(spec, ring, expected.max(rows))?;
    if rows >= bulk.vectors_per_block() { Ok(bulk) } else { bulk_layout(spec, ring, rows) }
}
