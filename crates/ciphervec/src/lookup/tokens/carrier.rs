//! How encrypted indices reach a server: what each transport's queries and keys are, read to the same ciphertexts.

use super::compact::messages::RootKeys;
use super::messages::TokensQuery;
use super::recipe::Recipe;
use crate::error::{Error, Result};
use crate::lookup::spec::Spec;
use ciphervec_he::ckks::{Ciphertext, EvaluationKeys, Evaluator, SeededCiphertext};
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::wire::KeyId;
use std::sync::Arc;

/// The keys of a client.
#[derive(Clone)]
pub struct Held {
    pub evaluator: Evaluator,
    /// Of compact transport.
    pub roots: Option<Arc<RootKeys>>,
}

/// A query that was read, and who asks it.
pub struct Asked<'a> {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub memo: &'a [u8],
    pub evaluator: Evaluator,
    /// The ciphertexts of a batch by table and entry, made as they are asked for.
    pub batches: Box<dyn Iterator<Item = Result<Vec<Ciphertext>>> + 'a>,
}

/// A transport on the server's side.
pub trait Carrier: Send + Sync {
    /// Bytes of a batch's query, with seeds in place of masks.
    fn query_bytes(&self, recipe: &Recipe, tables: usize) -> usize;

    /// Bytes of the evaluation keys.
    ///
    /// # Errors
    /// None for recipes of lookups.
    fn key_bytes(&self, recipe: &Recipe) -> Result<usize>;

    /// Reads what a client's `keys()` gives.
    ///
    /// # Errors
    /// Damaged or foreign bytes, and [`Error::Lookup`] for a set that lacks a key.
    fn keys(
        &self,
        spec: &Spec,
        recipe: &Recipe,
        bytes: &[u8],
    ) -> Result<(EvaluationKeys, Option<RootKeys>)>;

    /// Reads a query. `held` finds the keys of who asks.
    ///
    /// # Errors
    /// Damaged or malformed bytes, a query for another table or other settings, and what `held` says.
    fn read<'a>(
        &'a self,
        spec: &'a Spec,
        recipe: &'a Recipe,
        bytes: &'a [u8],
        held: &dyn Fn(KeyId) -> Result<Held>,
    ) -> Result<Asked<'a>>;
}

/// The transport of a recipe's indices.
pub fn carrier(recipe: &Recipe) -> &dyn Carrier {
    match recipe.compact_layout() {
        Some(compact) => &**compact,
        None => &Standard,
    }
}

/// Ciphertexts with all primes that the server's work needs.
struct Standard;

impl Carrier for Standard {
    fn query_bytes(&self, recipe: &Recipe, tables: usize) -> usize {
        let params = recipe.params();
        tables * recipe.entries() * SeededCiphertext::bytes_at(params, params.max_level())
    }

    fn key_bytes(&self, recipe: &Recipe) -> Result<usize> {
        Ok(recipe.key_plan().bytes(recipe.params())?)
    }

    fn keys(
        &self,
        _: &Spec,
        recipe: &Recipe,
        bytes: &[u8],
    ) -> Result<(EvaluationKeys, Option<RootKeys>)> {
        let keys = EvaluationKeys::from_bytes(recipe.params(), bytes)?;
        if !keys.covers(&recipe.key_plan()) {
            return Err(Error::Lookup {
                operation: "register",
                detail: format!(
                    "the set lacks a key that strategy {} needs over these tables, or reaches \
                    too low a level; send what the \
                     client's keys() gives",
                    recipe.strategy()
                ),
            });
        }
        Ok((keys, None))
    }

    fn read<'a>(
        &'a self,
        spec: &'a Spec,
        recipe: &'a Recipe,
        bytes: &'a [u8],
        held: &dyn Fn(KeyId) -> Result<Held>,
    ) -> Result<Asked<'a>> {
        let TokensQuery { key, nonce, memo, ciphertexts } =
            TokensQuery::from_bytes(spec, recipe, bytes)?;
        let evaluator = if recipe.key_plan().keys(recipe.params()) == 0 {
            Evaluator::without_keys(recipe.params().clone())
        } else {
            held(ciphertexts.first().map(Ciphertext::key_id).unwrap_or_default())?.evaluator
        };
        let (mut left, each) = (ciphertexts.into_iter(), recipe.entries() * spec.tables());
        let batches = core::iter::from_fn(move || {
            let batch: Vec<_> = left.by_ref().take(each).collect();
            (!batch.is_empty()).then_some(Ok(batch))
        });
        Ok(Asked { key, nonce, memo, evaluator, batches: Box::new(batches) })
    }
}
