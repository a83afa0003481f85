//! Queries as bounded integer weights, for anyone who knows the description and the public key.

use super::layout::similarity;
use crate::error::{Error, Result};
use crate::index::form::Additive;
use crate::index::spec::IndexSpec;
use crate::search::form::contract::PlainQueries;
use crate::search::quantize::Checked;
use crate::similarity::additive::{Layout, Probes};
use ciphervec::search::form::additive::schemes::read_public_key;
use ciphervec_he_secret::wire::KeyId;

impl PlainQueries for Additive {
    fn key(&self, _spec: &IndexSpec, public_key: Option<&[u8]>) -> Result<KeyId> {
        Ok(read_public_key(self, public_key.ok_or(Error::NoPublicKey)?)?.key_id())
    }

    fn encode(&self, spec: &IndexSpec, rows: &Checked<'_>) -> Result<Vec<u8>> {
        Ok(probes(spec, rows)?.to_bytes())
    }
}

/// Rows as probes of an index.
pub fn probes(spec: &IndexSpec, rows: &Checked<'_>) -> Result<Probes> {
    Probes::quantize(&similarity(spec, Layout::Elements)?, rows.as_given())
}
