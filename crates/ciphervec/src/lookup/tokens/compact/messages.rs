//! Frames of compact queries and of the keys that make roots of them.
//!
//! Every part has its length before it, as u32 in a query and as u64 in keys:
//!
//! - a query, version 2: `description's id 16 | nonce 16 | memo | frame of compact ciphertexts, by
//!   batch, table, entry`;
//! - evaluation keys: `frame of evaluation keys | of a ring switching key | of bootstrapping keys`.

use super::layout::Compact;
use crate::error::{Error, Result};
use crate::lookup::serialize::header;
use crate::lookup::serialize::{TRANSPORT_VERSION, expect_params, expect_scheme, expect_spec};
use crate::lookup::spec::Spec;
use crate::lookup::tokens::recipe::Recipe;
use ciphervec_he::ckks::{
    BootstrappingKeys, CompactCiphertexts, EvaluationKeys, KeyPlan, RingSwitchKey,
};
use ciphervec_he::lattice::SegmentId;
use ciphervec_he::wire::{self, KeyId, Kind, Reader};

const QUERY: &str = "a query of a lookup";
const KEYS: &str = "the evaluation keys of a lookup";

/// Encrypted indices as a server reads them.
pub struct CompactQuery<'a> {
    pub key: KeyId,
    pub nonce: SegmentId,
    pub memo: &'a [u8],
    /// By batch, table and entry.
    pub ciphertexts: CompactCiphertexts,
    pub batches: usize,
}

impl<'a> CompactQuery<'a> {
    pub fn write(
        spec: &Spec,
        (key, nonce): (KeyId, SegmentId),
        memo: &[u8],
        ciphertexts: &[u8],
    ) -> Vec<u8> {
        let mut out = vec![0; wire::HEADER_LEN];
        out.extend_from_slice(&spec.id());
        out.extend_from_slice(&nonce.0);
        for part in [memo, ciphertexts] {
            out.extend_from_slice(&(part.len() as u32).to_le_bytes());
            out.extend_from_slice(part);
        }
        header(Kind::Query, spec.params, key).seal_version(TRANSPORT_VERSION, &mut out);
        out
    }

    pub fn from_bytes(
        spec: &Spec,
        (recipe, compact): (&Recipe, &Compact),
        bytes: &'a [u8],
    ) -> Result<Self> {
        let (version, header, payload) = wire::open_version(Kind::Query, TRANSPORT_VERSION, bytes)?;
        let mut reader = Reader::new(QUERY, payload);
        expect_scheme(&header, &reader)?;
        expect_params(QUERY, spec, &header)?;
        if version != TRANSPORT_VERSION {
            return Err(reader.error("a query of compact transport expected").into());
        }
        expect_spec("query", spec, reader.array()?)?;
        let nonce = SegmentId(reader.array()?);
        let length = reader.u32()? as usize;
        let memo = reader.take(length)?;
        let length = reader.u32()? as usize;
        let ciphertexts = CompactCiphertexts::from_bytes(compact.ring(), reader.take(length)?)?;
        let each = spec.tables() * recipe.entries();
        if !ciphertexts.len().is_multiple_of(each) {
            let detail = format!("{} ciphertexts where {each} make a batch", ciphertexts.len());
            return Err(reader.error(detail).into());
        }
        reader.finish()?;
        let batches = ciphertexts.len() / each;
        Ok(CompactQuery { key: header.key, nonce, memo, ciphertexts, batches })
    }
}

/// What makes roots of a client's queries.
pub struct RootKeys {
    pub switch: RingSwitchKey,
    pub bootstrapping: BootstrappingKeys,
}

/// Bytes of the keys.
pub(in crate::lookup) fn key_bytes(recipe: &Recipe, compact: &Compact) -> Result<usize> {
    let params = recipe.params();
    let exponential = compact.exponential().plan()?.key_bytes;
    let parts = recipe.key_plan().bytes(params)? + RingSwitchKey::bytes(params) + exponential;
    Ok(wire::HEADER_LEN + 3 * 8 + parts)
}

/// Reads what `write_keys` wrote, of which `plan` lists the first.
///
/// # Errors
/// Damaged or foreign bytes, other parameters, keys of several secrets, and a set that lacks one.
pub(in crate::lookup) fn read_keys(
    spec: &Spec,
    (plan, compact): (&KeyPlan, &Compact),
    bytes: &[u8],
) -> Result<(EvaluationKeys, RootKeys)> {
    let (header, payload) = wire::open(Kind::EvaluationKeys, bytes)?;
    let mut reader = Reader::new(KEYS, payload);
    expect_scheme(&header, &reader)?;
    expect_params(KEYS, spec, &header)?;
    let mut part = || -> Result<&[u8]> {
        let length = usize::try_from(reader.u64()?).unwrap_or(usize::MAX);
        Ok(reader.take(length)?)
    };
    let params = compact.exponential().params();
    let evaluation = EvaluationKeys::from_bytes(params, part()?)?;
    let switch = RingSwitchKey::from_bytes(compact.ring(), part()?)?;
    let bootstrapping = BootstrappingKeys::from_bytes(params, part()?)?;
    reader.finish()?;
    let expected = evaluation.key_id();
    for actual in [header.key, switch.key_id(), bootstrapping.key_id()] {
        if actual != expected {
            return Err(ciphervec_he::Error::WrongKey { what: KEYS, expected, actual }.into());
        }
    }
    if !evaluation.covers(plan) {
        let detail =
            "the set lacks a key that compact transport needs over these tables; send what \
                      the client's keys() gives"
                .into();
        return Err(Error::Lookup { operation: "register", detail });
    }
    Ok((evaluation, RootKeys { switch, bootstrapping }))
}
