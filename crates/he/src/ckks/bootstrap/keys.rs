//! Bootstrapping keys: enter from the owner; what refreshes ciphertexts leaves. Both sides.

use super::super::ciphertext::Ciphertext;
use super::super::keys::{EvaluationKeys, KeyPlan};
use super::super::params::Params;
use super::super::serialize::open;
#[cfg(feature = "client")]
use super::super::{entropy::Entropy, keys::SecretKey};
use super::encapsulation::Encapsulation;
use crate::error::{Error, Result};
use crate::wire::{self, Header, KeyId, Kind, Scheme};
use std::sync::Arc;

/// The evaluation keys of the three stages, each only as high as its stage, and those to and from
/// the sparse secret. Public: of no use for reading anything.
#[derive(Clone)]
pub struct BootstrappingKeys {
    params: Arc<Params>,
    key: KeyId,
    encapsulation: Arc<Encapsulation>,
    /// Of slots-to-coefficients, of the reduction and of coefficients-to-slots.
    sets: [Arc<EvaluationKeys>; 3],
}

/// Bytes of the serialised keys of these plans.
pub(super) fn bytes(params: &Params, plans: &[KeyPlan; 3]) -> Result<usize> {
    let sets = plans.iter().map(|plan| Ok(8 + plan.bytes(params)?)).sum::<Result<usize>>()?;
    Ok(wire::HEADER_LEN + Encapsulation::bytes_at(params) + sets)
}

impl BootstrappingKeys {
    /// Keys of `secret` to a fresh sparse secret of `weight` and back, and the sets that `plans`
    /// list.
    #[cfg(feature = "client")]
    pub(super) fn generate(
        secret: &SecretKey,
        weight: usize,
        plans: &[KeyPlan; 3],
        entropy: &mut Entropy,
    ) -> Result<Self> {
        let params = secret.params();
        let encapsulation = Encapsulation::generate(params, weight, secret.values(), entropy)?;
        let mut set = |plan| -> Result<Arc<EvaluationKeys>> {
            Ok(Arc::new(secret.evaluation_keys_with(plan, entropy)?))
        };
        let [low, middle, high] = plans;
        let sets = [set(low)?, set(middle)?, set(high)?];
        Ok(BootstrappingKeys {
            params: params.clone(),
            key: secret.key_id(),
            encapsulation: Arc::new(encapsulation),
            sets,
        })
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// The secret key they belong to.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// Bytes in memory, where masks are expanded.
    pub fn memory(&self) -> usize {
        let sets: usize = self.sets.iter().map(|set| set.memory()).sum();
        self.encapsulation.memory() + sets
    }

    pub(super) fn encapsulation(&self) -> &Encapsulation {
        &self.encapsulation
    }

    /// Refuses a ciphertext of other parameters, of another key or of degree 2, and keys that lack
    /// one of those that `plans` list.
    pub(super) fn check(
        &self,
        params: &Params,
        plans: &[KeyPlan; 3],
        a: &Ciphertext,
    ) -> Result<()> {
        params.check_same("a ciphertext", a.params())?;
        params.check_same("bootstrapping keys", &self.params)?;
        if self.key != a.key_id() {
            let (expected, actual) = (self.key, a.key_id());
            return Err(Error::WrongKey { what: "a ciphertext", expected, actual });
        }
        a.expected().linear("a ciphertext to refresh")?;
        for (set, plan) in self.sets.iter().zip(plans) {
            if !set.covers(plan) {
                return Err(Error::MissingKey {
                    key: format!("one of those that {plan:?} lists"),
                    make: "SecretKey::bootstrapping_keys with this bootstrapper".into(),
                });
            }
        }
        Ok(())
    }

    /// Of slots-to-coefficients, of the reduction and of coefficients-to-slots.
    pub(super) fn sets(&self) -> &[Arc<EvaluationKeys>; 3] {
        &self.sets
    }

    fn header(&self) -> Header {
        Header {
            scheme: Scheme::Ckks,
            kind: Kind::BootstrappingKeys,
            params: self.params.param_id(),
            key: self.key,
        }
    }

    /// Serialises the keys; masks are written as their seeds.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut frame = vec![0; wire::HEADER_LEN];
        self.encapsulation.append(&self.params, &mut frame);
        for set in &self.sets {
            frame.extend((set.bytes() as u64).to_le_bytes());
            frame.extend(set.to_bytes());
        }
        self.header().seal(&mut frame);
        frame
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or foreign bytes, other parameters, or sets of another secret key.
    pub fn from_bytes(params: &Arc<Params>, bytes: &[u8]) -> Result<Self> {
        let (header, mut reader) = open(params, Kind::BootstrappingKeys, bytes)?;
        if params.spec().special_primes == 0 {
            return Err(reader.error("parameters with special primes expected"));
        }
        let encapsulation = Arc::new(Encapsulation::read(params, &mut reader)?);
        let mut set = || {
            let length = usize::try_from(reader.u64()?).unwrap_or(usize::MAX);
            let keys = EvaluationKeys::from_bytes(params, reader.take(length)?)?;
            if keys.key_id() == header.key {
                return Ok(Arc::new(keys));
            }
            let (expected, actual) = (header.key, keys.key_id());
            Err(Error::WrongKey { what: "a set of bootstrapping keys", expected, actual })
        };
        let sets = [set()?, set()?, set()?];
        reader.finish()?;
        Ok(BootstrappingKeys { params: params.clone(), key: header.key, encapsulation, sets })
    }
}

impl core::fmt::Debug for BootstrappingKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "BootstrappingKeys({}, {:?})", self.key, self.sets)
    }
}
