//! Building queries: normalise, scale, round, encrypt. Float rows enter; bytes for the server leave, and what opening needs stays.

use super::catalogue::Catalogue;
use super::owner::Owner;
use super::seal::Engine;
use crate::Mode;
use crate::error::{Error, Result};
use crate::message::{MAX_QUERIES, QueryHead, append_integers};
use crate::protect::filter::FilterTag;
use crate::quantize::{check, scales};
use crate::similarity::additive::{self as similarity, Probes};
use ciphervec_he::keys::random_bytes;
use ciphervec_he::lattice::Scales;
use ciphervec_he::lattice::ring::{Ciphertext, Layout};
use ciphervec_he::wire::KeyId;
use rayon::prelude::*;
use std::time::Instant;
use zeroize::Zeroizing;

/// A batch of queries, ready to send. `Debug` shows sizes only.
pub struct Query {
    pub(super) bytes: Vec<u8>,
    pub(super) norms: Vec<f64>,
    pub(super) scales: Scales,
    pub(super) epoch: u32,
    pub(super) filtered: bool,
    /// Quantised queries, which the compact form needs again to remove the masks.
    pub(super) integers: Zeroizing<Vec<i64>>,
    /// The same for the additively homomorphic schemes.
    pub(super) probes: Option<Probes>,
    pub(super) seconds: f64,
    /// Made by somebody else, whose answers are not believed either.
    pub(super) foreign: bool,
}

impl core::fmt::Debug for Query {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Query({} queries, {} bytes)", self.norms.len(), self.bytes.len())
    }
}

impl Query {
    /// What the server gets.
    pub fn to_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Queries in the batch.
    pub fn len(&self) -> usize {
        self.norms.len()
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.norms.is_empty()
    }

    /// Seconds it took to build.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}

impl Owner {
    /// Builds queries from rows (row-major) for an index of which `catalogue` knows every segment. `tags` restrict the
    /// answer to records that carry all of them.
    ///
    /// # Errors
    /// Rows that fail the checks, more than [`MAX_QUERIES`] of them, no randomness.
    pub fn query(
        &self,
        rows: &[f32],
        catalogue: &Catalogue,
        epoch: u32,
        tags: &[FilterTag],
    ) -> Result<Query> {
        let start = Instant::now();
        let checked = check(self.spec(), rows)?;
        let count = u32::try_from(checked.len()).unwrap_or(u32::MAX);
        if count > MAX_QUERIES {
            return Err(Error::Range {
                what: "queries in one batch",
                expected: format!("at most {MAX_QUERIES}"),
                actual: checked.len().to_string(),
            });
        }
        let ring = match &self.engine {
            Engine::Ring { ring, .. } => Some(ring.as_ref()),
            _ => None,
        };
        let top_level = catalogue.top_level();
        let scales = scales(self.spec(), ring, top_level);
        let mut integers = Zeroizing::new(Vec::new());
        let mut body = Vec::new();
        let mut probes = None;
        let key = match (&self.engine, ring) {
            (Engine::Additive(_), _) => {
                let rounded =
                    Probes::quantize(&self.spec().similarity(similarity::Layout::Elements)?, rows)?;
                body = rounded.to_bytes();
                probes = Some(rounded);
                self.key_pair()?.key_id()
            }
            (Engine::Open, _) => {
                checked
                    .unit()
                    .iter()
                    .for_each(|value| body.extend_from_slice(&value.to_le_bytes()));
                KeyId::default()
            }
            (_, Some(ring)) => {
                let layout = Layout::new(self.spec().dimension(), 0)?;
                let secret = self.query_key(ring, epoch);
                let (seed, noise_seed) =
                    (random_bytes::<32>()?, Zeroizing::new(random_bytes::<32>()?));
                body.extend_from_slice(&seed);
                let values = Zeroizing::new(checked.quantise(scales.query).values());
                let encrypted: Vec<Vec<Ciphertext>> = values
                    .par_chunks_exact(self.spec().dimension())
                    .enumerate()
                    .map(|(query, values)| {
                        let first = (query * layout.chunks()) as u64;
                        Ciphertext::encrypt(
                            ring,
                            &secret,
                            &layout,
                            values,
                            &seed,
                            &noise_seed,
                            first,
                        )
                    })
                    .collect();
                encrypted.iter().flatten().for_each(|piece| piece.append(&mut body));
                self.key_id()
            }
            _ => {
                *integers = checked.quantise(scales.query).values();
                append_integers(self.spec().precision(), &integers, &mut body);
                KeyId::default()
            }
        };
        let head = QueryHead { count, top_level, epoch, tags: tags.to_vec() };
        let bytes = head.frame(self.spec(), key, &body);
        debug_assert!(self.spec().mode() != Mode::Sealed || key == self.key_id());
        let seconds = start.elapsed().as_secs_f64();
        Ok(Query {
            bytes,
            norms: checked.norms,
            scales,
            epoch,
            filtered: !tags.is_empty(),
            integers,
            probes,
            seconds,
            foreign: false,
        })
    }
}
