//! Plain queries of a device without a key. The owner, who opens the answers for it, reads such bytes and believes none of
//! them.

use super::form::{self, not_probed};
use super::message::QueryHead;
use super::owner::Owner;
use super::quantize::check;
use super::query::Query;
use crate::error::{Error, Result};
use crate::index::spec::{IndexSpec, MAX_QUERIES};
use ciphervec_he_secret::wire::KeyId;
use std::sync::OnceLock;

/// Asks an index of mode `sealed-index`, whose queries are plain, and opens no answer. It holds no secret.
#[derive(Clone, Debug)]
pub struct Probe {
    spec: IndexSpec,
    key: KeyId,
}

impl Probe {
    /// For the index of `spec`; under an additively homomorphic scheme with the index's public key, as the server has it.
    ///
    /// # Errors
    /// A mode whose queries are not plain; a public key that is missing, superfluous, or not one of the scheme.
    pub fn new(spec: IndexSpec, public_key: Option<&[u8]>) -> Result<Self> {
        let form = form::of(&spec).plain_queries().ok_or_else(|| not_probed(&spec))?;
        let key = form.key(&spec, public_key)?;
        Ok(Probe { spec, key })
    }

    /// The description.
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// Query bytes of rows (row-major): normalised and rounded, not encrypted.
    ///
    /// # Errors
    /// Rows that fail the checks, more than [`MAX_QUERIES`] of them or none.
    pub fn query(&self, rows: &[f32]) -> Result<Vec<u8>> {
        let checked = check(&self.spec, rows)?;
        let count = expect_some(checked.len())?;
        let form = form::of(&self.spec).plain_queries().ok_or_else(|| not_probed(&self.spec))?;
        let body = form.encode(&self.spec, &checked)?;
        let tags = Vec::new();
        let head = QueryHead {
            count,
            top_level: 0,
            epoch: 0,
            tags,
            segments: None,
            words: None,
            half: None,
            fold: None,
        };
        Ok(head.frame(&self.spec, self.key, &body))
    }
}

impl Owner {
    /// Takes in a plain query that somebody else made, to open the answer to it.
    ///
    /// Its probes must be rounded unit vectors: weights 1, B, B² … would write a template into one score, and short or
    /// long ones would move the threshold that the scores are compared with. Norms do not travel, so that only metrics
    /// that need none are served.
    ///
    /// # Errors
    /// Damaged or foreign bytes; a mode whose queries are encrypted; another metric than cosine and hamming; filter tags;
    /// probes that no unit vector rounds to.
    pub fn read_query(&self, bytes: &[u8]) -> Result<Query> {
        let spec = self.spec();
        if spec.metric().needs_norms() {
            let known = "cosine or hamming: the norms of probes do not travel";
            return Err(Error::choice("the metric of a probe", known, spec.metric().as_str()));
        }
        if form::of(spec).plain_queries().is_none() {
            return Err(not_probed(spec));
        }
        let (head, key, body) = QueryHead::open(spec, bytes)?;
        let plain = head.tags.is_empty() && head.segments.is_none() && head.words.is_none();
        if head.top_level != 0 || !plain {
            return Err(body
                .error("version 1, level 0, no filter tags and no segments expected")
                .into());
        }
        let count = expect_some(head.count as usize)?;
        Ok(Query {
            bytes: bytes.to_vec(),
            norms: vec![unit_norm(spec); count as usize],
            centre: Vec::new(),
            filtered: false,
            segments: None,
            folded: Vec::new(),
            words: None,
            ahead: Vec::new(),
            kept: self.form().read_queries(count, key, body)?,
            seconds: 0.0,
            foreign: true,
            matching: OnceLock::new(),
        })
    }
}

/// What [`check`] finds for a probe before it is normalised: √d for signs, and 1 where the metric needs no norm.
fn unit_norm(spec: &IndexSpec) -> f64 {
    if spec.metric().compares_signs() { (spec.dimension() as f64).sqrt() } else { 1.0 }
}

fn expect_some(count: usize) -> Result<u32> {
    u32::try_from(count).ok().filter(|count| (1..=MAX_QUERIES).contains(count)).ok_or_else(|| {
        Error::Range {
            what: "queries in one batch",
            expected: format!("1 to {MAX_QUERIES}"),
            actual: count.to_string(),
        }
    })
}
