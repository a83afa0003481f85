//! A CKKS key with a valid object of every kind, and their decoders.

use ciphervec_he_secret::ckks::{
    BootstrappingKeys, Ciphertext, CompactCiphertexts, EvaluationKeys, HalfRing, KeyPlan, Params,
    ParamsSpec, Plaintext, PublicKey, Ring, RingSwitchKey, SecretKey,
};
use ciphervec_he_secret::params::Security;
use ciphervec_he_secret::wire::{HEADER_LEN, Header, Kind, Scheme};
use std::io::Read;
use std::sync::{Arc, LazyLock};

/// One key, and what is made with it.
pub struct Ckks {
    params: Arc<Params>,
    key: SecretKey,
    half_ring: Arc<HalfRing>,
    switch: RingSwitchKey,
    pub parameters: Vec<u8>,
    pub public_key: Vec<u8>,
    pub secret_key: Vec<u8>,
    pub evaluation_keys: Vec<u8>,
    pub bootstrapping_keys: Vec<u8>,
    pub ciphertext: Vec<u8>,
    pub seeded: Vec<u8>,
    pub compact_ciphertexts: Vec<u8>,
    pub ring_switch_key: Vec<u8>,
}

pub static CKKS: LazyLock<Ckks> = LazyLock::new(|| Ckks::try_new().expect("a key can be made"));

impl Ckks {
    fn try_new() -> ciphervec_he_secret::Result<Self> {
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
        let half_ring = Arc::new(HalfRing::new(&params, 12)?);
        let half = key.half_ring_key(&half_ring)?;
        let (compact, switch) = (half.encrypt(&[&[0.5, -0.25]])?, half.switch_key()?);
        Ok(Ckks {
            parameters: params.to_bytes(),
            public_key: key.public_key()?.to_bytes(),
            secret_key: key.to_bytes().to_vec(),
            evaluation_keys: key.evaluation_keys(&KeyPlan::new().relinearise())?.to_bytes(),
            bootstrapping_keys: bootstrapping_keys(&key)?,
            ciphertext: key.encrypt(&plaintext)?.to_bytes(),
            seeded: key.encrypt_seeded(&plaintext)?.to_bytes(),
            compact_ciphertexts: compact.to_bytes(&half_ring),
            ring_switch_key: switch.to_bytes(),
            half_ring,
            switch,
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

    /// Bootstrapping keys, whole and as they come.
    pub fn read_bootstrapping_keys(&self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        let came = self.stream_bootstrapping_keys(&mut rest);
        BootstrappingKeys::from_bytes(&self.params, bytes).is_ok_and(|keys| {
            assert_eq!(keys.to_bytes(), bytes);
            assert_eq!(keys.bytes(), bytes.len());
            assert!(rest.is_empty());
            assert_eq!(came.expect("the same bytes").to_bytes(), bytes);
            true
        })
    }

    /// Bootstrapping keys as they come.
    pub fn stream_bootstrapping_keys(
        &self,
        from: &mut dyn Read,
    ) -> ciphervec_he_secret::Result<BootstrappingKeys> {
        BootstrappingKeys::read_from(&self.params, from)
    }

    /// Ciphertexts of the half ring, which are switched to the whole one.
    pub fn read_compact_ciphertexts(&self, bytes: &[u8]) -> bool {
        CompactCiphertexts::from_bytes(&self.half_ring, bytes).is_ok_and(|ciphertexts| {
            assert_eq!(ciphertexts.to_bytes(&self.half_ring), bytes);
            // Of another key at worst.
            if let Ok(whole) = self.half_ring.switch(&ciphertexts, 0, &self.switch) {
                assert_eq!(whole.level(), 0);
            }
            true
        })
    }

    /// The key from the half ring to the whole one.
    pub fn read_ring_switch_key(&self, bytes: &[u8]) -> bool {
        RingSwitchKey::from_bytes(&self.half_ring, bytes).is_ok_and(|key| {
            assert_eq!(key.to_bytes(), bytes);
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

/// What has the form of bootstrapping keys, of a set that no bootstrapping has room in: those of a real
/// one are hundreds of megabytes. Its keys to and from a sparse secret are made of a key that there is.
fn bootstrapping_keys(key: &SecretKey) -> ciphervec_he_secret::Result<Vec<u8>> {
    let params = key.params();
    let set = key.evaluation_keys(&KeyPlan::new().relinearise())?.to_bytes();
    // Level, number of keys and element, then the key: a seed and limbs modulo q_0, q_1 and p.
    let one = &set[HEADER_LEN + 16..];
    let limb = |bits: usize| params.degree() / 8 * bits;
    let bits = |index: usize| params.prime(index).bits() as usize;
    let both = limb(bits(0)) + limb(bits(1));
    let special = (one.len() - 32) / 2 - both;
    let mut frame = vec![0; HEADER_LEN];
    frame.extend(&one[..32 + limb(bits(0))]);
    frame.extend(&one[32 + both..][..special]);
    frame.extend(one);
    for _ in 0..3 {
        frame.extend((set.len() as u64).to_le_bytes());
        frame.extend(&set);
    }
    let header = Header {
        scheme: Scheme::Ckks,
        kind: Kind::BootstrappingKeys,
        params: params.param_id(),
        key: key.key_id(),
    };
    header.seal(&mut frame);
    Ok(frame)
}
