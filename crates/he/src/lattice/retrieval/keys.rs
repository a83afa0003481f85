//! Evaluation keys of private retrieval: what the server expands a query's numbers with, and makes selectors
//! of them. Public to it, useless for reading anything.

use crate::error::{Error, Result};
use crate::lattice::ring::Ring;
use crate::lattice::ring::inner::{SwitchingKey, TreeKeys};
use crate::params::ParamId;
use crate::wire::{self, Header, KeyId, Kind, Reader, Scheme};

/// Steps of the tree: numbers that a ciphertext carries are at most two to this.
pub const LEVELS: u8 = 10;
/// Its first steps, whose key switching takes two digits.
pub const FINE_LEVELS: u8 = 5;

/// The evaluation keys of one retrieval key. They serve tables of every shape.
pub struct SelectorKeys {
    key: KeyId,
    epoch: u32,
    tree: TreeKeys,
    square: SwitchingKey,
}

impl SelectorKeys {
    /// Bytes of the frame.
    pub const BYTES: usize =
        wire::HEADER_LEN + 4 + (LEVELS + FINE_LEVELS + 1) as usize * SwitchingKey::BYTES;

    /// Of keys for each step of the tree, and one that switches t² to t. Hidden: a retrieval key makes them.
    #[doc(hidden)]
    pub fn from_parts(key: KeyId, epoch: u32, tree: TreeKeys, square: SwitchingKey) -> Self {
        SelectorKeys { key, epoch, tree, square }
    }

    /// The key id of the owner.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// The epoch of the retrieval key that they belong to.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Bytes of their polynomials in memory.
    pub fn memory(&self) -> usize {
        self.tree.memory() + SwitchingKey::MEMORY
    }

    pub(super) fn tree(&self) -> &TreeKeys {
        &self.tree
    }

    pub(super) fn square(&self) -> &[SwitchingKey] {
        core::slice::from_ref(&self.square)
    }

    /// The frame: epoch, then a seed and two packed polynomials for every step and digit, and for t².
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(Self::BYTES - wire::HEADER_LEN);
        payload.extend_from_slice(&self.epoch.to_le_bytes());
        let keys = self.tree.0.iter().flatten().chain([&self.square]);
        keys.for_each(|key| key.append(&mut payload));
        header(Kind::SelectorKeys, self.key).frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or foreign bytes, or other parameters.
    pub fn from_bytes(ring: &Ring, bytes: &[u8]) -> Result<Self> {
        let (header, mut reader) = open(Kind::SelectorKeys, bytes)?;
        let epoch = reader.u32()?;
        let tree = TreeKeys::read(ring, &mut reader, LEVELS, FINE_LEVELS)?;
        let square = SwitchingKey::read(ring, &mut reader)?;
        reader.finish()?;
        Ok(SelectorKeys { key: header.key, epoch, tree, square })
    }
}

/// The public name of the parameter set.
pub fn param_id() -> ParamId {
    ParamId::of(
        "retrieval: N=4096 q, P = two largest 50-bit primes = 1 mod 8192, ternary sigma=3.2, \
         14 bits a coefficient, digits 4 x 7 bits",
    )
}

/// The header of a message of retrieval.
pub(super) fn header(kind: Kind, key: KeyId) -> Header {
    Header { scheme: Scheme::Ring, kind, params: param_id(), key }
}

/// The header and the payload of a message of retrieval.
pub(super) fn open(kind: Kind, bytes: &[u8]) -> Result<(Header, Reader<'_>)> {
    let (header, payload) = wire::open(kind, bytes)?;
    let what = kind.as_str();
    if header.params != param_id() || header.scheme != Scheme::Ring {
        return Err(Error::Parameters {
            what,
            expected: param_id().to_string(),
            actual: header.params.to_string(),
        });
    }
    Ok((header, Reader::new(what, payload)))
}
