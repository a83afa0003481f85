//! Query ciphertext: quantised queries enter, 25.6 KB a piece leave. Owner to server.

#[cfg(feature = "client")]
use super::Layout;
use super::{DEGREE, POLY_BYTES, Ring, pack_poly, unpack_poly};
use crate::error::Result;
use crate::wire::Reader;
use ciphervec_arith::sample::Stream;

#[cfg(feature = "client")]
use super::QueryKey;
#[cfg(feature = "client")]
use ciphervec_arith::{convert, poly};
#[cfg(feature = "client")]
use zeroize::Zeroize;

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

    /// Encrypts the pieces of `query` (length `layout.dimension()`): piece j masks with stream
    /// `first_stream + j` of `seed`, which must never serve twice, and draws its noise from the
    /// same streams of `noise_seed`.
    #[cfg(feature = "client")]
    pub fn encrypt(
        ring: &Ring,
        key: &QueryKey,
        layout: &Layout,
        query: &[i64],
        seed: &[u8; 32],
        noise_seed: &[u8; 32],
        first_stream: u64,
    ) -> Vec<Ciphertext> {
        let q = ring.modulus();
        query
            .chunks(layout.chunk_len())
            .enumerate()
            .map(|(piece, values)| {
                let stream = first_stream + piece as u64;
                let mut errors = vec![0i32; DEGREE];
                Stream::new(noise_seed, stream).gaussian(&mut errors);
                let mut message = vec![0i64; DEGREE];
                for (index, value) in values.iter().enumerate() {
                    // X^(−i) = −X^(N − i) for i > 0.
                    let (place, signed) =
                        if index == 0 { (0, *value) } else { (DEGREE - index, -value) };
                    message[place] = signed;
                }
                let mut constant = vec![0; DEGREE];
                convert::lift_noisy(&mut constant, &message, &errors, q);
                errors.zeroize();
                message.zeroize();
                ring.ciphertext.forward(&mut constant);
                let linear = Self::mask(ring, seed, stream);
                let mut masked = vec![0; DEGREE];
                poly::mul(&mut masked, &linear, &key.residues, q);
                poly::sub_assign(&mut constant, &masked, q);
                masked.zeroize();
                Ciphertext { constant, linear }
            })
            .collect()
    }

    /// The c1 of a piece that is encrypted later, as the seed says it; its c0 is zero.
    pub fn masks_alone(ring: &Ring, seed: &[u8; 32], stream: u64) -> Self {
        Ciphertext { constant: vec![0; DEGREE], linear: Self::mask(ring, seed, stream) }
    }

    fn mask(ring: &Ring, seed: &[u8; 32], stream: u64) -> Vec<u64> {
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
