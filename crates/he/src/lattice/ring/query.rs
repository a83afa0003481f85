//! Query ciphertext of the ring form, 25.6 KB a piece: the owner encrypts it, and the server reads
//! it.

use super::{DEGREE, POLY_BYTES, Ring, pack_poly, unpack_poly};
use crate::error::Result;
use crate::wire::Reader;
use ciphervec_arith::sample::Stream;

/// One piece of one query under the query key: c0 + c1 t = Σ_i q_i X^(−i) + e. NTT form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ciphertext {
    pub(super) constant: Vec<u64>,
    pub(super) linear: Vec<u64>,
}

/// Half of an answer: what depends on c1 alone, or the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// V and Σ a_r c1_r, of the mask of a query.
    Linear,
    /// U and Σ a_r c0_r, of the query.
    Constant,
}

impl Ciphertext {
    /// Bytes of one serialised piece; the shared seed comes on top.
    pub const BYTES: usize = POLY_BYTES;

    /// The c1 of a piece that is encrypted later, as the seed says it; its c0 is zero.
    pub fn masks_alone(ring: &Ring, seed: &[u8; 32], stream: u64) -> Self {
        Ciphertext { constant: vec![0; DEGREE], linear: Self::mask(ring, seed, stream) }
    }

    /// Of c0 and c1. Hidden: the key of an epoch's queries encrypts.
    #[doc(hidden)]
    pub fn from_parts(constant: Vec<u64>, linear: Vec<u64>) -> Self {
        Ciphertext { constant, linear }
    }

    /// The c1 of a stream of a seed.
    #[doc(hidden)]
    pub fn mask(ring: &Ring, seed: &[u8; 32], stream: u64) -> Vec<u64> {
        let mut linear = vec![0; DEGREE];
        Stream::new(seed, stream).uniform(ring.modulus(), &mut linear);
        linear
    }

    /// Appends c0; c1 is the seed's.
    pub fn append(&self, out: &mut Vec<u8>) {
        pack_poly(&self.constant, out);
    }

    /// Reads one piece and expands its mask.
    ///
    /// # Errors
    /// Too few bytes or a residue at or above q.
    pub fn read(
        ring: &Ring,
        reader: &mut Reader<'_>,
        seed: &[u8; 32],
        stream: u64,
    ) -> Result<Self> {
        let constant = unpack_poly("a query", reader.take(POLY_BYTES)?, ring.modulus())?;
        Ok(Ciphertext { constant, linear: Self::mask(ring, seed, stream) })
    }
}
