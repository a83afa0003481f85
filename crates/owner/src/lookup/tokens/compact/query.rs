//! Compact query: documents as numbers of the half ring. Client side.

use super::layout::Compact;
use super::messages::{CompactQuery, RootKeys};
use crate::error::Result;
use crate::lookup::documents::Documents;
use crate::lookup::serialize::header;
use crate::lookup::tokens::sender::{Head, Sender};
use crate::lookup::{Recipe, Spec};
use ciphervec_he_secret::ckks::{CompactCiphertexts, EvaluationKeys, SecretKey};
use ciphervec_he_secret::wire::{self, Kind};
use zeroize::Zeroizing;

impl Sender for Compact {
    fn keys(
        &self,
        (spec, recipe): (&Spec, &Recipe),
        secret: &SecretKey,
    ) -> Result<Option<Vec<u8>>> {
        let evaluation = secret.evaluation_keys(&recipe.key_plan())?;
        let switch = secret.half_ring_key(self.ring())?.switch_key()?;
        let bootstrapping = secret.exponential_keys(self.exponential())?;
        Ok(Some(write_keys(spec, &evaluation, &RootKeys { switch, bootstrapping })))
    }

    fn query(
        &self,
        of: (&Spec, &Recipe),
        secret: &SecretKey,
        head: &Head<'_>,
        documents: &Documents<'_>,
    ) -> Result<Vec<u8>> {
        let sealed = encrypt(self, of, secret, documents)?.to_bytes(self.ring());
        Ok(CompactQuery::write(of.0, (head.key, head.nonce), head.memo, &sealed))
    }
}

/// Every token a slot, batch after batch; of each batch the lists of every table.
fn encrypt(
    compact: &Compact,
    (spec, recipe): (&Spec, &Recipe),
    secret: &SecretKey,
    documents: &Documents<'_>,
) -> Result<CompactCiphertexts> {
    let (batch, entries) = (recipe.batch(), recipe.entries());
    let lists = spec.tables() * entries;
    let batches = documents.tokens().div_ceil(batch);
    let mut numbers = Zeroizing::new(vec![0.0; batches * lists * compact.ring().messages()]);
    let mut turns = Zeroizing::new(vec![0.0; entries]);
    for token in 0..batches * batch {
        let (first, slot) = (token / batch * lists, token % batch);
        for table in 0..spec.tables() {
            let row = documents.row(token, table).unwrap_or(spec.padding_row());
            recipe.write_turns(row, &mut turns)?;
            for (entry, &turn) in turns.iter().enumerate() {
                let (which, place) = compact.place(lists, table * entries + entry, slot);
                numbers[(first + which) * compact.ring().messages() + place] = turn;
            }
        }
    }
    let numbers: Vec<&[f64]> = numbers.chunks_exact(compact.ring().messages()).collect();
    Ok(secret.half_ring_key(compact.ring())?.encrypt(&numbers)?)
}

/// The keys of the work on roots, and those that make them.
fn write_keys(spec: &Spec, evaluation: &EvaluationKeys, roots: &RootKeys) -> Vec<u8> {
    let mut out = vec![0; wire::HEADER_LEN];
    let mut put = |part: Vec<u8>| {
        out.extend_from_slice(&(part.len() as u64).to_le_bytes());
        out.extend_from_slice(&part);
    };
    put(evaluation.to_bytes());
    put(roots.switch.to_bytes());
    put(roots.bootstrapping.to_bytes());
    header(Kind::EvaluationKeys, spec.param_id(), evaluation.key_id()).seal(&mut out);
    out
}
