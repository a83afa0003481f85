//! ElGamal keys with a valid object of every kind, and their decoders.

use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages};
use ciphervec_he_secret::elgamal::shared_noise::{SharedNoiseKey, SharedNoiseTable};
use ciphervec_he_secret::elgamal::{PublicKey, SecretKey};
use std::sync::LazyLock;

/// One key of each form, and what is made with them.
pub struct ElGamal {
    key: SecretKey,
    shared_key: SharedNoiseKey,
    pub public_key: Vec<u8>,
    pub secret_key: Vec<u8>,
    pub ciphertexts: Vec<u8>,
    pub shared: Vec<u8>,
}

pub static ELGAMAL: LazyLock<ElGamal> =
    LazyLock::new(|| ElGamal::try_new().expect("a key can be made"));

impl ElGamal {
    fn try_new() -> ciphervec_he_secret::Result<Self> {
        let key = SecretKey::generate()?;
        let shared_key = SharedNoiseKey::generate(2)?;
        let messages = Messages::from_i64(&[1, -2]);
        Ok(ElGamal {
            public_key: key.public().to_bytes(),
            secret_key: key.to_bytes().to_vec(),
            ciphertexts: key.public().table_to_bytes(&key.encrypt(1, 2, &messages)?),
            shared: shared_key.encrypt(1, &messages)?.to_bytes(),
            key,
            shared_key,
        })
    }

    /// A public key.
    pub fn read_public_key(&self, bytes: &[u8]) -> bool {
        PublicKey::from_bytes(bytes).is_ok_and(|key| {
            assert_eq!(key.to_bytes(), bytes);
            true
        })
    }

    /// A secret key, as a key file holds it.
    pub fn read_secret_key(&self, bytes: &[u8]) -> bool {
        SecretKey::from_bytes(bytes).is_ok_and(|key| {
            assert_eq!(*key.to_bytes(), *bytes);
            true
        })
    }

    /// A table of ciphertexts, which is decrypted too: any outcome but a panic will do.
    pub fn read_ciphertexts(&self, bytes: &[u8]) -> bool {
        self.key.public().table_from_bytes(bytes).is_ok_and(|table| {
            let _ = self.key.decrypt(&table, 8);
            assert_eq!(self.key.public().table_to_bytes(&table), bytes);
            true
        })
    }

    /// Embeddings with shared noise, which are compared too.
    pub fn read_shared(&self, bytes: &[u8]) -> bool {
        SharedNoiseTable::from_bytes(self.shared_key.key_id(), bytes).is_ok_and(|table| {
            let weights = [3, -5];
            if let Ok(sums) = table.weighted_sum_vartime(&weights) {
                let _ = self.shared_key.decrypt(&sums, &weights, 8);
            }
            assert_eq!(table.to_bytes(), bytes);
            true
        })
    }
}
