//! Compact transport on the server's side: half a ring's ciphertexts, bootstrapped into roots of unity.

use super::layout::Compact;
use super::messages::{CompactQuery, RootKeys, key_bytes, read_keys};
use crate::error::{Error, Result};
use crate::lookup::spec::Spec;
use crate::lookup::tokens::carrier::{Asked, Carrier, Held};
use crate::lookup::tokens::recipe::Recipe;
use ciphervec_he::ckks::EvaluationKeys;
use ciphervec_he::wire::KeyId;

impl Carrier for Compact {
    fn query_bytes(&self, recipe: &Recipe, tables: usize) -> usize {
        self.ring().query_bytes(tables * recipe.entries())
    }

    fn key_bytes(&self, recipe: &Recipe) -> Result<usize> {
        key_bytes(recipe, self)
    }

    fn keys(
        &self,
        spec: &Spec,
        recipe: &Recipe,
        bytes: &[u8],
    ) -> Result<(EvaluationKeys, Option<RootKeys>)> {
        let (evaluation, roots) = read_keys(spec, (&recipe.key_plan(), self), bytes)?;
        Ok((evaluation, Some(roots)))
    }

    fn read<'a>(
        &'a self,
        spec: &'a Spec,
        recipe: &'a Recipe,
        bytes: &'a [u8],
        held: &dyn Fn(KeyId) -> Result<Held>,
    ) -> Result<Asked<'a>> {
        let CompactQuery { key, nonce, memo, ciphertexts, batches } =
            CompactQuery::from_bytes(spec, (recipe, self), bytes)?;
        let Held { evaluator, roots } = held(ciphertexts.key_id())?;
        let roots = roots.ok_or_else(|| Error::Lookup {
            operation: "answer",
            detail:
                "these keys are for standard transport; register what this client's keys() gives"
                    .into(),
        })?;
        let lists = recipe.entries() * spec.tables();
        let each = move |at: usize| self.roots(&roots, &ciphertexts, (at * lists, lists));
        let batches = Box::new((0..batches).map(each));
        Ok(Asked { key, nonce, memo, evaluator, batches })
    }
}
