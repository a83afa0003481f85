//! Secret keys: a scalar, its bytes, and what it encrypts and decrypts.

use super::base_point::scalar;
use super::inner::{Points, check_header, check_id, param_id, random_scalar, short};
use super::{Ciphertexts, DiscreteLog, PublicKey};
use crate::additive::{Decrypt, Messages};
use crate::error::{Error, Result};
use crate::wire::{self, Kind, Reader};
use curve25519_dalek::Scalar;
use curve25519_dalek::ristretto::RistrettoPoint;
use rayon::prelude::*;
use std::fmt;
use zeroize::Zeroizing;

/// The secret scalar `x` and its public half. Wiped on drop.
pub struct SecretKey {
    scalar: Zeroizing<Scalar>,
    public: PublicKey,
}

impl SecretKey {
    /// A fresh key from the operating system's generator.
    ///
    /// # Errors
    /// [`Error::Randomness`] if the generator fails.
    pub fn generate() -> Result<Self> {
        loop {
            let scalar = random_scalar()?;
            if *scalar != Scalar::ZERO {
                return Ok(SecretKey::new(scalar));
            }
        }
    }

    fn new(scalar: Zeroizing<Scalar>) -> Self {
        let public = PublicKey::new(RistrettoPoint::mul_base(&scalar));
        SecretKey { scalar, public }
    }

    /// The key, framed and not encrypted: 96 bytes.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.public.header(Kind::SecretKey).frame(self.scalar.as_bytes()))
    }

    /// Reads a key.
    ///
    /// # Errors
    /// [`Error::Malformed`] and the other errors of [`wire::open`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::SecretKey, bytes)?;
        let what = Kind::SecretKey.as_str();
        check_header(&header, what, param_id())?;
        let mut reader = Reader::new(what, payload);
        let encoded = Zeroizing::new(reader.array()?);
        reader.finish()?;
        let scalar: Option<Scalar> = Scalar::from_canonical_bytes(*encoded).into();
        let Some(scalar) = scalar.map(Zeroizing::new).filter(|scalar| **scalar != Scalar::ZERO)
        else {
            return Err(Error::malformed(what, "the scalar is zero or not canonical"));
        };
        let key = SecretKey::new(scalar);
        check_id(&header, &key.public, what)?;
        Ok(key)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(ElGamal {}, redacted)", self.public.key_id())
    }
}

impl Decrypt for SecretKey {
    type Public = PublicKey;

    fn public(&self) -> &PublicKey {
        &self.public
    }

    /// `(r G, (m + r x) G)`: both are multiples of the base point.
    fn encrypt(&self, rows: usize, columns: usize, messages: &Messages) -> Result<Ciphertexts> {
        let messages = short(messages, rows.checked_mul(columns))?;
        let encrypt = |message: &i64| {
            let noise = random_scalar()?;
            let both = Zeroizing::new(*scalar(*message) + *noise * *self.scalar);
            Ok([RistrettoPoint::mul_base(&noise), RistrettoPoint::mul_base(&both)])
        };
        let points: Result<Vec<Points<2>>> = messages.par_iter().map(encrypt).collect();
        Ok(Ciphertexts::new(self.public.key_id(), rows, columns, points?))
    }

    fn decrypt(&self, table: &Ciphertexts, bits: u32) -> Result<Messages> {
        table.check_key(self.public.key_id())?;
        let open = |[one, two]: &Points<2>| two - one * *self.scalar;
        DiscreteLog::shared().of_all(table.points(), open, bits)
    }
}
