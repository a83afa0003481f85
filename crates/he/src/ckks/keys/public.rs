//! Public key: anyone who holds it encrypts, and the owner alone decrypts.

use super::super::ciphertext::{Ciphertext, Meta, mask};
use super::super::entropy::Entropy;
use super::super::noise::Noise;
use super::super::params::Params;
use super::super::plaintext::Plaintext;
use super::super::poly::{Ntt, Poly};
use super::super::serialize::{limb_bytes, open, pack_limb, unpack_limb};
use super::super::small_polynomial::{SecretPoly, SmallPolynomial};
use crate::error::Result;
use crate::wire::{Header, KeyId, Kind, Scheme};
use std::sync::Arc;

/// (b, a) with b = −a s + e: an encryption of zero.
#[derive(Clone, PartialEq, Debug)]
pub struct PublicKey {
    id: KeyId,
    seed: [u8; 32],
    constant: Poly<Ntt>,
    linear: Poly<Ntt>,
}

impl PublicKey {
    /// b and a, the latter as `seed` gives it. Hidden: whoever has a secret key makes one with it.
    #[doc(hidden)]
    pub fn from_parts(id: KeyId, seed: [u8; 32], constant: Poly<Ntt>, linear: Poly<Ntt>) -> Self {
        PublicKey { id, seed, constant, linear }
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        self.constant.params()
    }

    /// The secret key it belongs to.
    pub fn key_id(&self) -> KeyId {
        self.id
    }

    /// Encrypts.
    ///
    /// # Errors
    /// [`crate::Error::Parameters`] for a plaintext of other parameters,
    /// [`crate::Error::Randomness`].
    pub fn encrypt(&self, plaintext: &Plaintext) -> Result<Ciphertext> {
        self.encrypt_with(plaintext, &mut Entropy::system())
    }

    /// [`Self::encrypt`] with randomness from `entropy`.
    ///
    /// # Errors
    /// As [`Self::encrypt`].
    pub fn encrypt_with(&self, plaintext: &Plaintext, entropy: &mut Entropy) -> Result<Ciphertext> {
        let params = self.params();
        params.check_same("a plaintext", plaintext.params())?;
        let (level, degree) = (plaintext.level(), params.degree());
        let seed = entropy.seed()?;
        let factor = SmallPolynomial::ternary(degree, &seed, 0).values(params, level);
        let part = |key: &Poly<Ntt>, stream| {
            let noise = SmallPolynomial::gaussian(degree, &seed, stream);
            let mut part: SecretPoly = noise.values(params, level);
            part.mul_add_assign(&factor, key);
            part.release()
        };
        let mut constant = part(&self.constant, 1);
        constant.add_assign(plaintext.poly());
        Ok(Ciphertext {
            parts: vec![constant, part(&self.linear, 2)],
            meta: Meta {
                key: self.id,
                scale: plaintext.scale(),
                slots: plaintext.slots(),
                noise: Noise::public_key(params.expansion()),
                magnitude: plaintext.magnitude(),
            },
        })
    }

    /// Bytes serialised.
    pub fn bytes(params: &Params) -> usize {
        let limbs = params.tables()[..params.spec().primes()].iter();
        crate::wire::HEADER_LEN + 32 + limbs.map(|table| limb_bytes(params, table)).sum::<usize>()
    }

    /// Serialises the key; a is written as its seed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut payload = self.seed.to_vec();
        for (index, limb) in self.constant.limbs().enumerate() {
            pack_limb(limb, self.params().prime(index), &mut payload);
        }
        let header = Header {
            scheme: Scheme::Ckks,
            kind: Kind::PublicKey,
            params: self.params().param_id(),
            key: self.id,
        };
        header.frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or foreign bytes, other parameters, a residue that is not below its prime.
    pub fn from_bytes(params: &Arc<Params>, bytes: &[u8]) -> Result<Self> {
        let (header, mut reader) = open(params, Kind::PublicKey, bytes)?;
        let seed = reader.array()?;
        let mut constant = Poly::scratch(params, params.max_level());
        for index in 0..=params.max_level() {
            unpack_limb(&mut reader, params.prime(index), constant.limb_mut(index))?;
        }
        reader.finish()?;
        let linear = mask(params, params.max_level(), &seed);
        Ok(PublicKey { id: header.key, seed, constant, linear })
    }
}
