//! The keys that a ciphertext is refreshed with.

use super::super::inner::WEIGHT;
use super::super::keys::SecretKey;
use super::super::{BootstrappingKeys, Entropy, KeyPlan};
use super::encapsulation;
use crate::error::Result;

/// Keys of `secret` to a fresh sparse secret and back, and the sets that `plans` list; `made` is called
/// after each key of those.
pub(super) fn generate(
    secret: &SecretKey,
    plans: &[KeyPlan; 3],
    entropy: &mut Entropy,
    made: &mut dyn FnMut(),
) -> Result<BootstrappingKeys> {
    let encapsulation = encapsulation::generate(secret.params(), WEIGHT, secret.values(), entropy)?;
    let [low, middle, high] = plans;
    let mut set = |plan| secret.evaluation_keys_watched(plan, entropy, made);
    Ok(BootstrappingKeys::from_parts(encapsulation, [set(low)?, set(middle)?, set(high)?]))
}
