//! Embeddings whose dimensions share their noise: 32 bytes a dimension. The owner encrypts and
//! decrypts; a server sums.
//!
//! Dimension `i` has a key `xᵢ` of its own, and an embedding `m` becomes `r G` and `mᵢ G + r xᵢ G`
//! for all `i`, half the size and half the work of ordinary ciphertexts. A weighted sum
//! `Σ wᵢ (mᵢ G + r xᵢ G)` is an ordinary ciphertext under the secret `Σ wᵢ xᵢ`, which the owner
//! makes when the answer comes (Abdalla, Bourse, De Caro, Pointcheval, PKC 2015, section 3).
//!
//! **That secret belongs to its query and must never leave the owner**: it opens the sum for these
//! weights in every embedding, and `d` independent ones give all `xᵢ` away. So there is no method
//! that hands it out, and the owner must know the weights, in the same order. Nobody else can
//! re-randomise sums, so whoever sees them and the embeddings can tell which weights were used:
//! this form is for answers that go back to the owner alone.

use curve25519_dalek::Scalar;
use curve25519_dalek::ristretto::RistrettoPoint;
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use super::base_point::scalar;
use super::inner::{Points, check_header, point, random_scalar, range, shape, short, sums};
use super::{Ciphertexts, DiscreteLog};
use crate::additive::Messages;
use crate::error::{Error, Result};
use crate::params::ParamId;
use crate::random::random_bytes;
use crate::wire::{self, Header, KeyId, Kind, Reader, Scheme};

/// One secret for every dimension, all derived from 32 bytes. Wiped on drop.
pub struct SharedNoiseKey {
    seed: Zeroizing<[u8; 32]>,
    id: KeyId,
    secrets: Zeroizing<Vec<Scalar>>,
}

impl core::fmt::Debug for SharedNoiseKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SharedNoiseKey({}, {} dimensions, redacted)", self.id, self.secrets.len())
    }
}

impl SharedNoiseKey {
    /// A fresh key for embeddings of `dimension`.
    ///
    /// # Errors
    /// [`Error::Randomness`] if the operating system's generator fails.
    pub fn generate(dimension: usize) -> Result<Self> {
        Ok(SharedNoiseKey::from_seed(*Zeroizing::new(random_bytes()?), dimension))
    }

    /// The key of a seed, as [`Self::seed`] gave it.
    pub fn from_seed(seed: [u8; 32], dimension: usize) -> Self {
        let seed = Zeroizing::new(seed);
        let digest =
            Zeroizing::new(blake3::derive_key("ciphervec v1 elgamal shared key-id", &*seed));
        let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 elgamal shared secrets");
        hasher.update(&*seed);
        let mut stream = hasher.finalize_xof();
        let mut wide = Zeroizing::new([0; 64]);
        let mut secrets = Zeroizing::new(Vec::with_capacity(dimension));
        for _ in 0..dimension {
            stream.fill(wide.as_mut());
            secrets.push(Scalar::from_bytes_mod_order_wide(&wide));
        }
        stream.zeroize();
        hasher.zeroize();
        SharedNoiseKey { seed, id: KeyId::of_hash(&digest), secrets }
    }

    /// The 32 secret bytes, for writing a key file.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// The public name of the key.
    pub fn key_id(&self) -> KeyId {
        self.id
    }

    /// Coordinates of an embedding.
    pub fn dimension(&self) -> usize {
        self.secrets.len()
    }

    /// Encrypts `columns` embeddings: a row for every dimension, a column for every embedding.
    ///
    /// # Errors
    /// [`Error::Range`] for a message out of range or a wrong count; [`Error::Randomness`].
    pub fn encrypt(&self, columns: usize, messages: &Messages) -> Result<SharedNoiseTable> {
        let rows = self.dimension();
        let messages = short(messages, rows.checked_mul(columns))?;
        let noises: Result<Vec<_>> = (0..columns).map(|_| random_scalar()).collect();
        let noises = noises?;
        let point = |(index, message): (usize, &i64)| {
            let noise = &noises[index % columns];
            let both = Zeroizing::new(*scalar(*message) + **noise * self.secrets[index / columns]);
            [RistrettoPoint::mul_base(&both)]
        };
        Ok(SharedNoiseTable {
            key: self.id,
            rows,
            common: noises.par_iter().map(|noise| RistrettoPoint::mul_base(noise)).collect(),
            points: messages.par_iter().enumerate().map(point).collect(),
        })
    }

    /// Decrypts what [`SharedNoiseTable::weighted_sum_vartime`] made with the same weights, of
    /// `|m| < 2^(bits - 1)`.
    ///
    /// # Errors
    /// [`Error::Bound`], also when the weights are others; [`Error::Range`] unless there is a
    /// weight a dimension; [`Error::WrongKey`].
    pub fn decrypt(&self, sums: &Ciphertexts, weights: &[i64], bits: u32) -> Result<Messages> {
        sums.check_key(self.id)?;
        check_weights(weights, self.dimension())?;
        let mut secret = Zeroizing::new(Scalar::ZERO);
        for (weight, one) in weights.iter().zip(self.secrets.iter()) {
            *secret += *scalar(*weight) * one;
        }
        let open = |[one, two]: &Points<2>| two - one * *secret;
        DiscreteLog::shared().of_all(sums.points(), open, bits)
    }
}

fn check_weights(weights: &[i64], dimension: usize) -> Result<()> {
    if weights.len() == dimension {
        Ok(())
    } else {
        Err(range("the number of weights", dimension.to_string(), weights.len()))
    }
}

/// Embeddings in columns, a row for every dimension; one more point a column for the common noise.
#[derive(Clone, Debug)]
pub struct SharedNoiseTable {
    key: KeyId,
    rows: usize,
    common: Vec<RistrettoPoint>,
    points: Vec<Points<1>>,
}

const WHAT: &str = "ciphertexts with shared noise";

fn params() -> ParamId {
    ParamId::of("elgamal ristretto255 shared noise")
}

impl SharedNoiseTable {
    /// Number of dimensions.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of embeddings.
    pub fn columns(&self) -> usize {
        self.common.len()
    }

    /// Row `i` times `weights[i]`, summed: one ciphertext an embedding, for
    /// [`SharedNoiseKey::decrypt`]. Timing depends on the weights.
    ///
    /// # Errors
    /// [`Error::Range`] unless there is one weight a row.
    pub fn weighted_sum_vartime(&self, weights: &[i64]) -> Result<Ciphertexts> {
        check_weights(weights, self.rows)?;
        let sums = sums(&self.points, self.columns(), weights);
        let pairs = self.common.iter().zip(sums).map(|(common, [sum])| [*common, sum]).collect();
        Ok(Ciphertexts::new(self.key, 1, self.columns(), pairs))
    }

    /// The embeddings, framed: 32 bytes a dimension and 32 more each.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = Header {
            scheme: Scheme::ElGamal,
            kind: Kind::Ciphertexts,
            params: params(),
            key: self.key,
        };
        let mut payload = Vec::with_capacity(8 + 32 * (self.points.len() + self.common.len()));
        payload.extend_from_slice(&(self.rows as u32).to_le_bytes());
        payload.extend_from_slice(&(self.columns() as u32).to_le_bytes());
        let all = self.common.par_iter().chain(self.points.as_flattened());
        let compressed: Vec<[u8; 32]> = all.map(|point| point.compress().0).collect();
        payload.extend_from_slice(compressed.as_flattened());
        header.frame(&payload)
    }

    /// Reads embeddings under the key `key`.
    ///
    /// # Errors
    /// [`Error::Malformed`] and the other errors of [`wire::open`]; [`Error::WrongKey`].
    pub fn from_bytes(key: KeyId, bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Ciphertexts, bytes)?;
        check_header(&header, WHAT, params())?;
        if header.key != key {
            return Err(Error::WrongKey { what: WHAT, expected: key, actual: header.key });
        }
        let mut reader = Reader::new(WHAT, payload);
        let (rows, columns) = shape(&mut reader)?;
        let count = rows.checked_add(1).and_then(|rows| rows.checked_mul(columns));
        let fits = count.and_then(|count| count.checked_mul(32)) == Some(reader.remaining());
        if !fits {
            return Err(reader.error(format!(
                "32 bytes each for {rows} + 1 times {columns} points expected, {} bytes came",
                reader.remaining()
            )));
        }
        let encoded = reader.take(reader.remaining())?;
        reader.finish()?;
        let points: Result<Vec<RistrettoPoint>> =
            encoded.as_chunks::<32>().0.par_iter().map(|bytes| point(WHAT, bytes)).collect();
        let mut common = points?;
        let points = common.split_off(columns).into_iter().map(|point| [point]).collect();
        Ok(SharedNoiseTable { key: header.key, rows, common, points })
    }
}
