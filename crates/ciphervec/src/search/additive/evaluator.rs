//! The server's half: a public key, galleries and probes enter, encrypted scores leave. It cannot name a secret key.

use crate::error::{Error, Result};
use crate::similarity::additive::{EncryptedVectors, Probes};
use crate::{IndexSpec, Scheme};
use ciphervec_he::additive::Evaluate;
use ciphervec_he::wire::{KeyId, Kind, Reader};
use ciphervec_he::{damgard_jurik, elgamal, okamoto_uchiyama};
use std::sync::Arc;

/// A public key, as an index uses it.
pub(crate) trait Evaluator: Send + Sync {
    /// The public name of the key.
    fn key_id(&self) -> KeyId;

    /// Reads the vectors of a segment of `spec` with `rows` rows.
    fn read(&self, spec: &IndexSpec, rows: u32, bytes: &[u8]) -> Result<Box<dyn Gallery>>;
}

/// The vectors of one segment, ready to be compared.
pub(crate) trait Gallery: Send + Sync {
    /// The scores of every probe, re-randomised and framed.
    fn score(&self, probes: &Probes) -> Result<Vec<u8>>;

    /// What was read.
    fn to_bytes(&self) -> Result<Vec<u8>>;
}

/// Reads the public key of `spec`.
///
/// # Errors
/// Damaged bytes, a key of another scheme or length.
pub(crate) fn read_public_key(spec: &IndexSpec, bytes: &[u8]) -> Result<Box<dyn Evaluator>> {
    let what = Kind::PublicKey.as_str();
    let expect =
        |fits: bool| match fits {
            true => Ok(()),
            false => Err(Reader::new(what, bytes)
                .error("the key has another scheme or length than the index")),
        };
    Ok(match spec.scheme() {
        Scheme::Sealed => {
            let known = "an additively homomorphic one to have a public key";
            return Err(Error::choice("scheme", known, spec.scheme().as_str()));
        }
        Scheme::Paillier | Scheme::DamgardJurik => {
            let key = damgard_jurik::PublicKey::from_bytes(bytes)?;
            expect(Some(key.scheme()) == spec.scheme().wire() && Some(key.bits()) == spec.bits())?;
            Box::new(Half(Arc::new(key)))
        }
        Scheme::OkamotoUchiyama => {
            let key = okamoto_uchiyama::PublicKey::from_bytes(bytes)?;
            expect(Some(key.bits()) == spec.bits())?;
            Box::new(Half(Arc::new(key)))
        }
        Scheme::ElGamal => Box::new(Half(Arc::new(elgamal::PublicKey::from_bytes(bytes)?))),
    })
}

struct Half<P>(Arc<P>);

impl<P: Evaluate + 'static> Evaluator for Half<P> {
    fn key_id(&self) -> KeyId {
        self.0.key_id()
    }

    fn read(&self, spec: &IndexSpec, rows: u32, bytes: &[u8]) -> Result<Box<dyn Gallery>> {
        let vectors = read_vectors(self.0.as_ref(), spec, rows, bytes)?;
        Ok(Box::new(Held { public: Arc::clone(&self.0), vectors }))
    }
}

struct Held<P: Evaluate> {
    public: Arc<P>,
    vectors: EncryptedVectors<P::Table>,
}

impl<P: Evaluate> Gallery for Held<P> {
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
pub(super) fn read_vectors<P: Evaluate>(
    public: &P,
    spec: &IndexSpec,
    rows: u32,
    bytes: &[u8],
) -> Result<EncryptedVectors<P::Table>> {
    let vectors = EncryptedVectors::from_bytes(public, bytes)?;
    let expected = spec.similarity(vectors.spec().layout())?;
    if *vectors.spec() != expected || vectors.len() != rows as usize {
        let what = Kind::EncryptedVectors.as_str();
        return Err(Reader::new(what, bytes)
            .error(format!("{rows} vectors as the index describes them expected"))
            .into());
    }
    Ok(vectors)
}
