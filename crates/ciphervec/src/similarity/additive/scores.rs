//! Encrypted scores of probes against vectors: their shape and ciphertexts.

use super::layout::Packing;
use super::spec::VectorSpec;
use ciphervec_he::additive::Table;
use ciphervec_he::wire::KeyId;

/// The scores of some probes against a gallery, still encrypted: a row of ciphertexts, probe after
/// probe, a ciphertext a block.
#[derive(Clone)]
pub struct EncryptedScores<T: Table> {
    pub(super) spec: VectorSpec,
    pub(super) packing: Packing,
    pub(super) key: KeyId,
    /// Vectors in each block.
    pub(super) fill: Vec<u16>,
    /// What each probe was multiplied by.
    pub(super) scales: Vec<u64>,
    pub(super) table: T,
}

impl<T: Table> EncryptedScores<T> {
    /// What was compared.
    pub fn spec(&self) -> &VectorSpec {
        &self.spec
    }

    /// How scores lie in ciphertexts.
    pub fn packing(&self) -> &Packing {
        &self.packing
    }

    /// The key they are encrypted under.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// How many probes.
    pub fn probes(&self) -> usize {
        self.scales.len()
    }

    /// How many vectors each was compared with.
    pub fn vectors(&self) -> usize {
        self.fill.iter().map(|&fill| usize::from(fill)).sum()
    }

    /// How many vectors each block holds.
    #[doc(hidden)]
    pub fn fill(&self) -> &[u16] {
        &self.fill
    }

    /// What each probe was multiplied by.
    pub fn scales(&self) -> &[u64] {
        &self.scales
    }

    /// How many ciphertexts.
    pub fn ciphertexts(&self) -> usize {
        self.table.columns()
    }

    /// The ciphertexts.
    pub fn table(&self) -> &T {
        &self.table
    }
}

impl<T: Table> core::fmt::Debug for EncryptedScores<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EncryptedScores")
            .field("spec", &self.spec)
            .field("key", &self.key)
            .field("probes", &self.probes())
            .field("vectors", &self.vectors())
            .finish_non_exhaustive()
    }
}
