//! How a client writes encrypted indices and the keys that a server looks them up with, by transport.

use super::messages::TokensQuery;
use crate::error::Result;
use crate::lookup::documents::Documents;
use crate::lookup::{Recipe, Spec};
use ciphervec_arith::parallel::*;
use ciphervec_he_secret::ckks::{Complex, Encoding, Plaintext, SecretKey};
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::wire::KeyId;
use zeroize::Zeroize;

/// What every query starts with.
pub struct Head<'a> {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub memo: &'a [u8],
}

/// A transport on the client's side.
pub trait Sender {
    /// The keys that a server needs, framed; none where it needs none.
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::Randomness`].
    fn keys(&self, of: (&Spec, &Recipe), secret: &SecretKey) -> Result<Option<Vec<u8>>>;

    /// A query for these documents, framed.
    ///
    /// # Errors
    /// An index that the tables do not have; [`ciphervec_he_secret::Error::Randomness`].
    fn query(
        &self,
        of: (&Spec, &Recipe),
        secret: &SecretKey,
        head: &Head<'_>,
        documents: &Documents<'_>,
    ) -> Result<Vec<u8>>;
}

/// Ciphertexts with all primes that the server's work needs.
pub struct Standard;

impl Sender for Standard {
    fn keys(&self, (_, recipe): (&Spec, &Recipe), secret: &SecretKey) -> Result<Option<Vec<u8>>> {
        let plan = recipe.key_plan();
        if plan.keys(recipe.params()) == 0 {
            return Ok(None);
        }
        Ok(Some(secret.evaluation_keys(&plan)?.to_bytes()))
    }

    fn query(
        &self,
        (spec, recipe): (&Spec, &Recipe),
        secret: &SecretKey,
        head: &Head<'_>,
        documents: &Documents<'_>,
    ) -> Result<Vec<u8>> {
        let (batch, entries) = (recipe.batch(), recipe.entries());
        let batches = documents.tokens().div_ceil(batch);
        let tables = (0..batches * spec.tables()).into_par_iter().map(|at| {
            let (first, table) = (at / spec.tables() * batch, at % spec.tables());
            let mut slots = vec![vec![Complex::default(); batch]; entries];
            let mut entry = vec![Complex::default(); entries];
            for slot in 0..batch {
                let row = documents.row(first + slot, table).unwrap_or(spec.padding_row());
                recipe.write(row, &mut entry)?;
                slots.iter_mut().zip(&entry).for_each(|(slots, value)| slots[slot] = *value);
            }
            let sealed = slots.iter().map(|values| seal(recipe, secret, values));
            let sealed = sealed.collect::<Result<Vec<_>>>();
            wipe(&mut entry);
            slots.iter_mut().for_each(|values| wipe(values));
            sealed
        });
        let ciphertexts: Vec<Vec<u8>> =
            tables.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        Ok(TokensQuery::write(spec, (head.key, head.nonce), head.memo, (batches, &ciphertexts)))
    }
}

/// All slots and a bound of 1 are declared, whatever is in them: neither tells how many tokens
/// there are.
fn seal(recipe: &Recipe, secret: &SecretKey, values: &[Complex]) -> Result<Vec<u8>> {
    let params = recipe.params();
    let encoding =
        Encoding { magnitude: Some(1.0), slots: Some(params.max_slots()), ..Encoding::default() };
    let plain = Plaintext::encode_complex_with(params, values, &encoding)?;
    Ok(secret.encrypt_seeded(&plain)?.to_bytes())
}

/// What indices were written as.
fn wipe(values: &mut [Complex]) {
    for value in values {
        value.re.zeroize();
        value.im.zeroize();
    }
}
