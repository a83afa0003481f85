//! Nothing enters, a CKKS key leaves, with a valid object of every kind.

use ciphervec_he::ckks::{
    Ciphertext, EvaluationKeys, KeyPlan, Params, ParamsSpec, Plaintext, PublicKey, Ring, SecretKey,
};
use ciphervec_he::params::Security;
use std::sync::{Arc, LazyLock};

/// One key, and what is made with it.
pub struct Ckks {
    params: Arc<Params>,
    key: SecretKey,
    pub parameters: Vec<u8>,
    pub public_key: Vec<u8>,
    pub secret_key: Vec<u8>,
    pub evaluation_keys: Vec<u8>,
    pub ciphertext: Vec<u8>,
    pub seeded: Vec<u8>,
}

pub static CKKS: LazyLock<Ckks> = LazyLock::new(|| Ckks::try_new().expect("a key can be made"));

impl Ckks {
    fn try_new() -> ciphervec_he::Result<Self> {
        // The smallest ring that the security table allows, with one level.
        let params = Params::new(ParamsSpec {
            log_degree: 12,
            ring: Ring::Standard,
            base_bits: 36,
            scale_bits: 28,
            levels: 1,
            special_primes: 1,
            special_bits: 38,
            digits: 2,
            security: Security::Classical128,
        })?;
        let key = SecretKey::generate(&params)?;
        let plaintext = Plaintext::encode(&params, &[0.5, -0.25])?;
        Ok(Ckks {
            parameters: params.to_bytes(),
            public_key: key.public_key()?.to_bytes(),
            secret_key: key.to_bytes().to_vec(),
            evaluation_keys: key.evaluation_keys(&KeyPlan::new().relinearise())?.to_bytes(),
            ciphertext: key.encrypt(&plaintext)?.to_bytes(),
            seeded: key.encrypt_seeded(&plaintext)?.to_bytes(),
            params,
            key,
        })
    }

    /// A description of parameters.
    pub fn read_parameters(&self, bytes: &[u8]) -> bool {
        Params::from_bytes(bytes).is_ok_and(|params| {
            assert_eq!(params.to_bytes(), bytes);
            true
        })
    }

    /// A public key.
    pub fn read_public_key(&self, bytes: &[u8]) -> bool {
        PublicKey::from_bytes(&self.params, bytes).is_ok_and(|key| {
            assert_eq!(key.to_bytes(), bytes);
            true
        })
    }

    /// A secret key, as a key file holds it.
    pub fn read_secret_key(&self, bytes: &[u8]) -> bool {
        SecretKey::from_bytes(&self.params, bytes).is_ok_and(|key| {
            assert_eq!(*key.to_bytes(), *bytes);
            true
        })
    }

    /// Evaluation keys.
    pub fn read_evaluation_keys(&self, bytes: &[u8]) -> bool {
        EvaluationKeys::from_bytes(&self.params, bytes).is_ok_and(|keys| {
            assert_eq!(keys.to_bytes(), bytes);
            assert_eq!(keys.bytes(), bytes.len());
            true
        })
    }

    /// A ciphertext, whole or with a seed, which is decrypted too: any outcome but a panic will do.
    pub fn read_ciphertext(&self, bytes: &[u8]) -> bool {
        Ciphertext::from_bytes(&self.params, bytes).is_ok_and(|ciphertext| {
            if let Ok(plaintext) = self.key.decrypt(&ciphertext) {
                assert_eq!(plaintext.decode().len(), ciphertext.slots());
            }
            let written = ciphertext.to_bytes();
            // One with a seed is written without it.
            assert!(written == bytes || written.len() > bytes.len());
            true
        })
    }
}
