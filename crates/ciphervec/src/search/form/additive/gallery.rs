//! Public keys and encrypted vectors of an index whichever its additively homomorphic scheme, for the server: it scores plain
//! probes.

use super::layout;
use crate::error::Result;
use crate::index::spec::IndexSpec;
use crate::search::segment::ParsedRows;
use crate::similarity::additive::{EncryptedVectors, Probes};
use ciphervec_he::additive::Evaluate;
use ciphervec_he::wire::{KeyId, Kind, Reader};
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
}

/// A key of one scheme.
pub struct Under<P>(Arc<P>);

impl<P> Under<P> {
    pub fn new(key: P) -> Self {
        Under(Arc::new(key))
    }
}

impl<P: Evaluate + 'static> PublicKey for Under<P> {
    fn key_id(&self) -> KeyId {
        self.0.key_id()
    }

    fn read(&self, spec: &IndexSpec, rows: u32, bytes: &[u8]) -> Result<Gallery> {
        let vectors = read_vectors(self.0.as_ref(), spec, rows, bytes)?;
        Ok(Gallery(Box::new(Encrypted { public: Arc::clone(&self.0), vectors })))
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
