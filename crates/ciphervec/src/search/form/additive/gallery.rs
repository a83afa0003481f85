//! Galleries: a public key, encrypted vectors and probes enter, encrypted scores leave. The server's half, and a writer's.

#[cfg(feature = "client")]
use super::check::{self, EncryptedBytes};
use super::layout;
use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::segment::ParsedRows;
#[cfg(feature = "client")]
use crate::similarity::additive::Vectors;
use crate::similarity::additive::{EncryptedVectors, Probes};
use ciphervec_he::additive::Evaluate;
use ciphervec_he::wire::{KeyId, Kind, Reader};
#[cfg(feature = "client")]
use ciphervec_he_secret::keys::Secret;
use std::sync::Arc;

/// A public key, as an index uses it.
pub trait PublicKey: Send + Sync {
    /// The public name of the key.
    fn key_id(&self) -> KeyId;

    /// Reads the vectors of a segment of `spec` with `rows` rows.
    ///
    /// # Errors
    /// Damaged or foreign bytes.
    fn read(&self, spec: &IndexSpec, rows: u32, bytes: &[u8]) -> Result<Gallery>;

    /// Encrypts rows, row-major, in the layout that suits their number; beside them their witness.
    ///
    /// # Errors
    /// Rows that cannot be rounded; no randomness.
    #[cfg(feature = "client")]
    fn encrypt(&self, spec: &IndexSpec, rows: &[f32], seed: &Secret) -> Result<EncryptedBytes>;
}

/// A key of one scheme; `packs` says whether its messages hold several numbers.
pub struct Under<P> {
    key: Arc<P>,
    #[cfg_attr(not(feature = "client"), expect(dead_code, reason = "only who encrypts lays out"))]
    packs: bool,
}

impl<P> Under<P> {
    pub fn new(key: P, packs: bool) -> Self {
        Under { key: Arc::new(key), packs }
    }
}

impl<P: Evaluate + 'static> PublicKey for Under<P> {
    fn key_id(&self) -> KeyId {
        self.key.key_id()
    }

    fn read(&self, spec: &IndexSpec, rows: u32, bytes: &[u8]) -> Result<Gallery> {
        let vectors = read_vectors(self.key.as_ref(), spec, rows, bytes)?;
        Ok(Gallery(Box::new(Encrypted { public: Arc::clone(&self.key), vectors })))
    }

    #[cfg(feature = "client")]
    fn encrypt(&self, spec: &IndexSpec, rows: &[f32], seed: &Secret) -> Result<EncryptedBytes> {
        let (public, count) = (self.key.as_ref(), rows.len() / spec.dimension());
        let layout = layout::choose(spec, count, public.message_bits(), self.packs)?;
        let vectors = Vectors::quantize(&layout, rows)?;
        let encrypted = EncryptedVectors::encrypt(&layout, public, &vectors)?;
        Ok((encrypted.to_bytes(public)?, check::witness(seed, &vectors, layout.layout())))
    }
}

/// The vectors of one segment, ready to be compared.
pub struct Gallery(Box<dyn Comparable>);

impl Gallery {
    /// The scores of every probe, re-randomised and framed.
    ///
    /// # Errors
    /// Probes of another description; no randomness.
    pub fn score(&self, probes: &Probes) -> Result<Vec<u8>> {
        self.0.score(probes)
    }
}

impl ParsedRows for Gallery {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        self.0.to_bytes()
    }
}

/// A gallery of whichever scheme.
trait Comparable: Send + Sync {
    fn score(&self, probes: &Probes) -> Result<Vec<u8>>;
    fn to_bytes(&self) -> Result<Vec<u8>>;
}

struct Encrypted<P: Evaluate> {
    public: Arc<P>,
    vectors: EncryptedVectors<P::Table>,
}

impl<P: Evaluate> Comparable for Encrypted<P> {
    fn score(&self, probes: &Probes) -> Result<Vec<u8>> {
        self.vectors.score(self.public.as_ref(), probes)?.to_bytes(self.public.as_ref())
    }

    fn to_bytes(&self) -> Result<Vec<u8>> {
        self.vectors.to_bytes(self.public.as_ref())
    }
}

/// Reads vectors and checks that they are those of a segment of `spec` with `rows` rows.
///
/// # Errors
/// Damaged or foreign bytes.
pub fn read_vectors<P: Evaluate>(
    public: &P,
    spec: &IndexSpec,
    rows: u32,
    bytes: &[u8],
) -> Result<EncryptedVectors<P::Table>> {
    let vectors = EncryptedVectors::from_bytes(public, bytes)?;
    let expected = layout::similarity(spec, vectors.spec().layout())?;
    if *vectors.spec() != expected || vectors.len() != rows as usize {
        let what = Kind::EncryptedVectors.as_str();
        return Err(Reader::new(what, bytes)
            .error(format!("{rows} vectors as the index describes them expected"))
            .into());
    }
    Ok(vectors)
}
