//! Looked-up rows as a client reads them: it refuses rows that were rounded further than their bound allows.

use crate::error::{Error, Result};
use crate::lookup::tokens::messages::open;
use crate::lookup::{Recipe, Spec};
use ciphervec::lookup::tokens::answer::{ROUNDED_VERSION, smallest_and_largest};
use ciphervec_he_secret::ckks::{Ciphertext, Params, Truncation};
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::wire::{KeyId, Kind};
use std::sync::Arc;

/// Two machines may differ in the last bits of what they derive.
const NEARLY: f64 = 1.0 + 1e-9;

/// Looked-up rows as a client reads them.
pub(in crate::lookup) struct TokensAnswer<'a> {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub memo: &'a [u8],
    pub batches: Vec<Vec<Group<'a>>>,
}

/// One column or two.
pub(in crate::lookup) struct Group<'a> {
    /// Of each column.
    pub scales: Vec<f64>,
    truncation: Truncation,
    coefficients: &'a [u8],
}

impl Group<'_> {
    /// What is decrypted, at scale 1.
    pub fn ciphertext(&self, params: &Arc<Params>, key: KeyId) -> Result<Ciphertext> {
        Ok(Ciphertext::from_truncated(params, &self.truncation, (key, 1.0), self.coefficients)?)
    }
}

impl<'a> TokensAnswer<'a> {
    /// # Errors
    /// Damaged or malformed bytes, an answer of another table, [`Error::Lookup`] where numbers were
    /// rounded more than the description says.
    pub fn from_bytes(spec: &Spec, recipe: &Recipe, bytes: &'a [u8]) -> Result<Self> {
        let (version, key, nonce, memo, mut reader, count) =
            open((Kind::Response, ROUNDED_VERSION), spec, bytes)?;
        if version != ROUNDED_VERSION {
            let detail = format!("an answer of version {ROUNDED_VERSION} expected, got {version}");
            return Err(reader.error(detail).into());
        }
        let (columns, each) = (spec.columns(), recipe.columns_each());
        let parts = recipe.design().degree() + 1;
        let mut group = |first: usize| -> Result<Group<'a>> {
            let scales = (first..columns.min(first + each)).map(|_| Ok(reader.f64()?));
            let scales: Vec<f64> = scales.collect::<Result<_>>()?;
            let bits = reader.take(parts)?.iter().map(|bits| u32::from(*bits)).collect();
            let truncation = Truncation::of(recipe.params(), bits)?;
            let numbers = scales.iter().all(|scale| *scale > 0.0 && scale.is_finite());
            let off = truncation.error(smallest_and_largest(&scales).0);
            let allowed = spec.rounding();
            if !numbers || off > allowed * NEARLY {
                let detail = format!(
                    "numbers are rounded by up to {off:.3e} where the description of the table says \
                     {allowed:.3e}; ask the server again, or take the description that it has now"
                );
                return Err(Error::Lookup { operation: "decode", detail });
            }
            let coefficients = reader.take(truncation.bytes())?;
            Ok(Group { scales, truncation, coefficients })
        };
        let mut batches = Vec::new();
        for _ in 0..count {
            let groups = (0..columns).step_by(each).map(&mut group);
            batches.push(groups.collect::<Result<Vec<_>>>()?);
        }
        reader.finish()?;
        Ok(TokensAnswer { key, nonce, memo, batches })
    }
}
