//! Compact ciphertexts: a seed and rounded coefficients, in memory and as bytes.
//!
//! `seed 16 | bits of a coefficient u8 | ciphertexts u32 | coefficients, ciphertext by ciphertext, in
//! little-endian bit order`.

use super::super::serialize::{open, pack_bits, unpack_bits};
use super::super::truncated::restore_from_bits;
use super::HalfRing;
use crate::error::{Error, Result};
use crate::wire::{self, Header, KeyId, Kind, Scheme};
use ciphervec_arith::sample::Stream;

/// Bytes before the coefficients.
const HEAD_BYTES: usize = 16 + 1 + 4;

/// Ciphertexts (a, b) of the half ring: one seed for every a, and b rounded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompactCiphertexts {
    pub(super) key: KeyId,
    pub(super) seed: [u8; 16],
    pub(super) bits: u32,
    pub(super) count: usize,
    pub(super) packed: Vec<u8>,
}

impl HalfRing {
    /// Bytes of so many ciphertexts, framed.
    pub fn query_bytes(&self, count: usize) -> usize {
        wire::HEADER_LEN + HEAD_BYTES + count * self.bytes()
    }

    /// a of ciphertext `index` in NTT form: public, and of no use twice under one secret, so that the
    /// key and the parameters are a part of what it is expanded from.
    #[doc(hidden)]
    pub fn mask(&self, key: KeyId, seed: &[u8; 16], index: usize) -> Vec<u64> {
        let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 ckks half-ring mask");
        hasher.update(seed).update(&key.0).update(&self.params.param_id().0);
        let mut limb = vec![0; self.messages()];
        let stream = Stream::new(hasher.finalize().as_bytes(), index as u64);
        { stream }.uniform(self.table.modulus(), &mut limb);
        limb
    }
}

impl CompactCiphertexts {
    /// None yet, whose masks come from `seed`. Hidden: the key of a half ring encrypts.
    #[doc(hidden)]
    pub fn masked(ring: &HalfRing, key: KeyId, seed: [u8; 16], count: usize) -> Self {
        let packed = Vec::with_capacity(count * ring.bytes());
        CompactCiphertexts { key, seed, bits: ring.bits, count: 0, packed }
    }

    /// One more, of the rounded residues of its b. Hidden like [`Self::masked`].
    #[doc(hidden)]
    pub fn push(&mut self, residues: &[u64]) {
        pack_bits(residues, self.bits, &mut self.packed);
        self.count += 1;
    }

    /// The number of ciphertexts.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The key they are encrypted under: the one of the whole ring, whose owner has both.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// b of ciphertext `index`.
    #[doc(hidden)]
    pub fn constant(&self, ring: &HalfRing, index: usize) -> Result<Vec<u64>> {
        let bytes = self.packed.chunks_exact(ring.bytes()).nth(index);
        let Some(bytes) = bytes.filter(|_| self.bits == ring.bits) else {
            return Err(Error::Range {
                what: "a compact ciphertext",
                expected: format!("one of {}, of {} bits", self.count, ring.bits),
                actual: format!("number {index}, of {} bits", self.bits),
            });
        };
        let mut residues = vec![0; ring.messages()];
        unpack_bits(bytes, self.bits, &mut residues);
        restore_from_bits(&mut residues, ring.params.prime(0).value(), self.bits);
        Ok(residues)
    }

    /// Serialises the ciphertexts.
    pub fn to_bytes(&self, ring: &HalfRing) -> Vec<u8> {
        let mut payload = Vec::with_capacity(HEAD_BYTES + self.packed.len());
        payload.extend_from_slice(&self.seed);
        payload.push(self.bits as u8);
        payload.extend_from_slice(&(self.count as u32).to_le_bytes());
        payload.extend_from_slice(&self.packed);
        let params = ring.params.param_id();
        let kind = Kind::CompactCiphertexts;
        Header { scheme: Scheme::Ckks, kind, params, key: self.key }.frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or foreign bytes, other parameters, another number of bits or of ciphertexts than
    /// there are bytes for.
    pub fn from_bytes(ring: &HalfRing, bytes: &[u8]) -> Result<Self> {
        let (header, mut reader) = open(&ring.params, Kind::CompactCiphertexts, bytes)?;
        let seed = reader.array()?;
        let (bits, count) = (u32::from(reader.u8()?), reader.u32()? as usize);
        if bits != ring.bits {
            return Err(reader.error(format!("coefficients of {bits} bits, not of {}", ring.bits)));
        }
        if count.checked_mul(ring.bytes()) != Some(reader.remaining()) {
            let detail = format!("{count} ciphertexts promised in {} bytes", reader.remaining());
            return Err(reader.error(detail));
        }
        let packed = reader.take(reader.remaining())?.to_vec();
        reader.finish()?;
        Ok(CompactCiphertexts { key: header.key, seed, bits, count, packed })
    }
}
