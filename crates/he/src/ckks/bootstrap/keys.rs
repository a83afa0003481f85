//! Bootstrapping keys: the owner makes them, and the server refreshes ciphertexts with them.
//! Public.

use super::super::ciphertext::Ciphertext;
use super::super::keys::{EvaluationKeys, KeyPlan};
use super::super::params::Params;
use super::encapsulation::Encapsulation;
use crate::error::{Error, Result};
use crate::wire::{self, KeyId};
use std::sync::Arc;

/// The evaluation keys of the three stages, each only as high as its stage, and those to and from
/// the sparse secret. Public: of no use for reading anything.
#[derive(Clone)]
pub struct BootstrappingKeys {
    pub(super) params: Arc<Params>,
    pub(super) key: KeyId,
    pub(super) encapsulation: Arc<Encapsulation>,
    /// Of slots-to-coefficients, of the reduction and of coefficients-to-slots.
    pub(super) sets: [Arc<EvaluationKeys>; 3],
}

/// Bytes of the serialised keys of these plans.
pub(super) fn bytes(params: &Params, plans: &[KeyPlan; 3]) -> Result<usize> {
    let sets = plans.iter().map(|plan| Ok(8 + plan.bytes(params)?)).sum::<Result<usize>>()?;
    Ok(wire::HEADER_LEN + Encapsulation::bytes_at(params) + sets)
}

impl BootstrappingKeys {
    /// The sets in the order of their stages. Hidden: whoever has a secret key makes them with it.
    #[doc(hidden)]
    pub fn from_parts(encapsulation: Encapsulation, sets: [EvaluationKeys; 3]) -> Self {
        let [low, ..] = &sets;
        let (params, key) = (low.params().clone(), low.key_id());
        let encapsulation = Arc::new(encapsulation);
        BootstrappingKeys { params, key, encapsulation, sets: sets.map(Arc::new) }
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

    /// Refuses a ciphertext of other parameters, of another key or of degree 2, and keys as
    /// [`Self::complete`] does.
    pub(super) fn check(
        &self,
        params: &Params,
        plans: &[KeyPlan; 3],
        a: &Ciphertext,
    ) -> Result<()> {
        params.check_same("a ciphertext", a.params())?;
        if self.key != a.key_id() {
            let (expected, actual) = (self.key, a.key_id());
            return Err(Error::WrongKey { what: "a ciphertext", expected, actual });
        }
        a.expected().linear("a ciphertext to refresh")?;
        self.complete(params, plans)
    }

    /// Refuses keys of other parameters, and keys that lack one of those that `plans` list.
    pub(super) fn complete(&self, params: &Params, plans: &[KeyPlan; 3]) -> Result<()> {
        params.check_same("bootstrapping keys", &self.params)?;
        let sets = self.sets.iter().zip(plans);
        let missing: Vec<String> = sets.flat_map(|(set, plan)| set.missing(plan)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::MissingKey {
            key: missing.join(", "),
            make: "SecretKey::bootstrapping_keys with this bootstrapper".into(),
        })
    }

    /// Of slots-to-coefficients, of the reduction and of coefficients-to-slots.
    pub(super) fn sets(&self) -> &[Arc<EvaluationKeys>; 3] {
        &self.sets
    }
}

impl core::fmt::Debug for BootstrappingKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "BootstrappingKeys({}, {:?})", self.key, self.sets)
    }
}
