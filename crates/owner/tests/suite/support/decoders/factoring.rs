//! Small keys of the schemes that rest on factoring with a valid object of every kind, and their decoders.

use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages};
use ciphervec_he_secret::factoring::NoisePool;
use ciphervec_he_secret::okamoto_uchiyama;
use ciphervec_he_secret::paillier::{self, Noise, PublicKey, SecretKey};
use std::sync::LazyLock;

/// One key, and what is made with it.
pub struct Factoring {
    key: SecretKey,
    other: okamoto_uchiyama::SecretKey,
    pub public_key: Vec<u8>,
    pub secret_key: Vec<u8>,
    pub other_public_key: Vec<u8>,
    pub other_secret_key: Vec<u8>,
    pub ciphertexts: Vec<u8>,
    pub other_ciphertexts: Vec<u8>,
    pub noise_pool: Vec<u8>,
}

/// Keys of 256 bits: short, and read in a moment.
pub static FACTORING: LazyLock<Factoring> =
    LazyLock::new(|| Factoring::try_new().expect("a small key can be made"));

impl Factoring {
    fn try_new() -> ciphervec_he_secret::Result<Self> {
        let key = paillier::insecure_generate(256, Noise::Subgroup)?;
        let other = okamoto_uchiyama::insecure_generate(256, okamoto_uchiyama::Noise::Full)?;
        let messages = Messages::from_i64(&[1, -2]);
        let pool = NoisePool::new(&key);
        pool.fill(&key, 2)?;
        Ok(Factoring {
            public_key: key.public().to_bytes(),
            secret_key: key.to_bytes().to_vec(),
            other_public_key: other.public().to_bytes(),
            other_secret_key: other.to_bytes().to_vec(),
            ciphertexts: key.public().table_to_bytes(&key.encrypt(1, 2, &messages)?),
            other_ciphertexts: other.public().table_to_bytes(&other.encrypt(2, 1, &messages)?),
            noise_pool: pool.into_bytes(&key)?.to_vec(),
            key,
            other,
        })
    }

    /// A public key of Paillier, Damgård–Jurik or Okamoto–Uchiyama.
    pub fn read_public_key(&self, bytes: &[u8]) -> bool {
        let one = PublicKey::insecure_from_bytes(bytes).map(|key| key.to_bytes());
        let other =
            okamoto_uchiyama::PublicKey::insecure_from_bytes(bytes).map(|key| key.to_bytes());
        one.or(other).is_ok_and(|written| {
            assert_eq!(written, bytes);
            true
        })
    }

    /// A secret key, as a key file holds it.
    pub fn read_secret_key(&self, bytes: &[u8]) -> bool {
        let one = SecretKey::insecure_from_bytes(bytes).map(|key| key.to_bytes());
        let other =
            okamoto_uchiyama::SecretKey::insecure_from_bytes(bytes).map(|key| key.to_bytes());
        one.or(other).is_ok_and(|written| {
            assert_eq!(*written, *bytes);
            true
        })
    }

    /// A table of ciphertexts, which is decrypted too: any outcome but a panic will do.
    pub fn read_ciphertexts(&self, bytes: &[u8]) -> bool {
        let one = self.key.public().table_from_bytes(bytes).map(|table| {
            let _ = self.key.decrypt(&table, 40);
            self.key.public().table_to_bytes(&table)
        });
        let other = self.other.public().table_from_bytes(bytes).map(|table| {
            let _ = self.other.decrypt(&table, 20);
            self.other.public().table_to_bytes(&table)
        });
        one.or(other).is_ok_and(|written| {
            assert_eq!(written, bytes);
            true
        })
    }

    /// A noise pool after decryption.
    pub fn read_noise_pool(&self, bytes: &[u8]) -> bool {
        NoisePool::from_bytes(&self.key, bytes).is_ok_and(|pool| {
            let written = pool.into_bytes(&self.key).expect("the pool is this key's");
            assert_eq!(*written, *bytes);
            true
        })
    }
}
