//! Compact query: documents enter, numbers of the half ring leave. Client side.

use super::layout::Compact;
use super::messages::{RootKeys, write_keys};
use crate::error::Result;
use crate::lookup::documents::Documents;
use crate::lookup::spec::Spec;
use crate::lookup::tokens::recipe::Recipe;
use ciphervec_he_secret::ckks::{CompactCiphertexts, SecretKey};
use zeroize::Zeroizing;

impl Compact {
    /// Every token a slot, batch after batch; of each batch the lists of every table.
    ///
    /// # Errors
    /// An index that the tables do not have; [`ciphervec_he_secret::Error::Randomness`].
    pub fn encrypt(
        &self,
        (spec, recipe): (&Spec, &Recipe),
        secret: &SecretKey,
        documents: &Documents<'_>,
    ) -> Result<CompactCiphertexts> {
        let (batch, entries) = (recipe.batch(), recipe.entries());
        let lists = spec.tables() * entries;
        let batches = documents.tokens().div_ceil(batch);
        let mut numbers = Zeroizing::new(vec![0.0; batches * lists * self.ring().messages()]);
        let mut turns = Zeroizing::new(vec![0.0; entries]);
        for token in 0..batches * batch {
            let (first, slot) = (token / batch * lists, token % batch);
            for table in 0..spec.tables() {
                let row = documents.row(token, table).unwrap_or(spec.padding_row());
                recipe.write_turns(row, &mut turns)?;
                for (entry, &turn) in turns.iter().enumerate() {
                    let (which, place) = self.place(lists, table * entries + entry, slot);
                    numbers[(first + which) * self.ring().messages() + place] = turn;
                }
            }
        }
        let numbers: Vec<&[f64]> = numbers.chunks_exact(self.ring().messages()).collect();
        Ok(secret.half_ring_key(self.ring())?.encrypt(&numbers)?)
    }

    /// The keys that a server needs, framed.
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::Randomness`].
    pub fn keys(&self, (spec, recipe): (&Spec, &Recipe), secret: &SecretKey) -> Result<Vec<u8>> {
        let evaluation = secret.evaluation_keys(&recipe.key_plan())?;
        let switch = secret.half_ring_key(self.ring())?.switch_key()?;
        let bootstrapping = secret.exponential_keys(self.exponential())?;
        Ok(write_keys(spec, &evaluation, &RootKeys { switch, bootstrapping }))
    }
}
