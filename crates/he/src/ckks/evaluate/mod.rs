//! Evaluator: computes on ciphertexts with the owner's evaluation keys. Server only.

mod add;
mod align;
mod double;
mod multiply;
mod rotate;
mod scalar;

pub(super) use multiply::halves;
pub use rotate::Decomposed;

use super::ciphertext::Ciphertext;
use super::keys::EvaluationKeys;
use super::modulus_chain::ModulusChain;
use super::params::Params;
use crate::error::{Error, Result};
use std::sync::Arc;

/// Computes on ciphertexts of one parameter set, with the evaluation keys it was given.
#[derive(Clone, Debug)]
pub struct Evaluator {
    params: Arc<Params>,
    keys: Option<Arc<EvaluationKeys>>,
}

impl Evaluator {
    /// An evaluator with keys.
    pub fn new(keys: Arc<EvaluationKeys>) -> Self {
        Evaluator { params: keys.params().clone(), keys: Some(keys) }
    }

    /// An evaluator for sums and products with plaintexts, which need no keys.
    pub fn without_keys(params: Arc<Params>) -> Self {
        Evaluator { params, keys: None }
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// The evaluation keys, if it has any.
    pub fn keys(&self) -> Option<&Arc<EvaluationKeys>> {
        self.keys.as_ref()
    }

    /// The keys that a ciphertext needs, seen to belong to it.
    fn keys_for(&self, ciphertext: &Ciphertext, what: &str, make: &str) -> Result<&EvaluationKeys> {
        self.check(ciphertext)?;
        let keys = self.keys.as_ref().ok_or_else(|| Error::MissingKey {
            key: what.to_owned(),
            make: format!("SecretKey::evaluation_keys and {make}"),
        })?;
        if keys.key_id() == ciphertext.key_id() {
            return Ok(keys);
        }
        let what = "a ciphertext";
        Err(Error::WrongKey { what, expected: keys.key_id(), actual: ciphertext.key_id() })
    }

    /// Primes and scales.
    fn chain(&self) -> &ModulusChain {
        self.params.chain()
    }

    /// Refuses a ciphertext of other parameters.
    fn check(&self, ciphertext: &Ciphertext) -> Result<()> {
        self.params.check_same("a ciphertext", ciphertext.params())
    }
}
