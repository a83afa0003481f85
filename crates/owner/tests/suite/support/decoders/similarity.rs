//! A small encrypted gallery, its scores and its probes as valid bytes, and their decoders.

use ciphervec_he_secret::additive::Decrypt;
use ciphervec_he_secret::paillier::{self, Noise, SecretKey};
use ciphervec_owner::similarity::additive::{
    EncryptedScores, EncryptedVectors, GridPrecision, Layout, OwnerScores, OwnerVectors, Probes,
    VectorSpec, Vectors,
};
use ciphervec_owner::{Error, Metric};
use std::sync::LazyLock;

/// One key, and what is compared under it.
pub struct Similarity {
    key: SecretKey,
    pub vectors: Vec<u8>,
    pub scores: Vec<u8>,
    pub probes: Vec<u8>,
}

/// A key of 256 bits: nine lanes, and a second block of one vector.
pub static SIMILARITY: LazyLock<Similarity> =
    LazyLock::new(|| Similarity::try_new().expect("a small gallery can be made"));

impl Similarity {
    fn try_new() -> Result<Self, Error> {
        let key = paillier::insecure_generate(256, Noise::Subgroup)?;
        let spec = VectorSpec::new(2, Metric::Cosine, GridPrecision::Small, Layout::Lanes)?;
        let rows: Vec<f32> = (0..20).map(|at| at as f32 - 9.5).collect();
        let gallery =
            EncryptedVectors::encrypt_as_owner(&spec, &key, &Vectors::quantize(&spec, &rows)?)?;
        let probes = Probes::quantize(&spec, &rows[..4])?;
        let scores = gallery.score(key.public(), &probes)?;
        Ok(Similarity {
            vectors: gallery.to_bytes(key.public())?,
            scores: scores.to_bytes(key.public())?,
            probes: probes.to_bytes(),
            key,
        })
    }

    /// Encrypted vectors.
    pub fn read_vectors(&self, bytes: &[u8]) -> bool {
        EncryptedVectors::from_bytes(self.key.public(), bytes).is_ok_and(|vectors| {
            let written = vectors.to_bytes(self.key.public()).expect("they are of this key");
            assert_eq!(written, bytes);
            true
        })
    }

    /// Encrypted scores, which are then opened: to an answer or to an error.
    pub fn read_scores(&self, bytes: &[u8]) -> bool {
        EncryptedScores::from_bytes(self.key.public(), bytes).is_ok_and(|scores| {
            let written = scores.to_bytes(self.key.public()).expect("they are of this key");
            assert_eq!(written, bytes);
            if let Ok(opened) = scores.open(&self.key) {
                assert_eq!(opened.cosines().len(), scores.probes() * scores.vectors());
            }
            true
        })
    }

    /// Plain probes.
    pub fn read_probes(&self, bytes: &[u8]) -> bool {
        Probes::from_bytes(bytes).is_ok_and(|probes| {
            assert_eq!(probes.to_bytes(), bytes);
            true
        })
    }
}
