//! Queries as integers, in words of 4 bytes, or of 8 in the wide form, for anyone who knows the description.

use super::scale::scales;
use crate::error::{Error, Result};
use crate::index::spec::IndexSpec;
use crate::search::form::contract::PlainQueries;
use crate::search::quantize::Checked;
use ciphervec_he_secret::lattice::compact::Width;
use ciphervec_he_secret::wire::KeyId;

impl PlainQueries for Width {
    fn key(&self, spec: &IndexSpec, public_key: Option<&[u8]>) -> Result<KeyId> {
        match public_key {
            None => Ok(KeyId::default()),
            Some(_) => {
                let known = "an additively homomorphic one to have a public key";
                Err(Error::choice("scheme", known, spec.scheme().as_str()))
            }
        }
    }

    fn encode(&self, spec: &IndexSpec, rows: &Checked<'_>) -> Result<Vec<u8>> {
        Ok(to_words(*self, &rows.quantize(scales(spec, *self).query).values()))
    }
}

/// The words of integers.
pub fn to_words(width: Width, values: &[i64]) -> Vec<u8> {
    match width {
        Width::Wide => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Width::Standard | Width::Small => {
            values.iter().flat_map(|value| (*value as i32).to_le_bytes()).collect()
        }
    }
}
