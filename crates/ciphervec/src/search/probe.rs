//! Plain queries without a key. Float rows and a public description enter, query bytes leave: what an edge device sends. The
//! owner, who opens the answers for it, reads such bytes and believes none of them.

use super::additive;
use super::owner::Owner;
use super::query::Query;
use super::seal::Engine;
use crate::error::{Error, Result};
use crate::message::{MAX_QUERIES, QueryHead, append_integers, read_integers};
use crate::quantize::{check, scales};
use crate::similarity::additive::{Layout, Probes};
use crate::{IndexSpec, Metric, Mode};
use ciphervec_he::lattice::Scales;
use ciphervec_he::wire::{KeyId, Kind, Reader};
use zeroize::Zeroizing;

/// The widest error of any precision, many times over.
const SLACK: f64 = 0.01;

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
        if spec.mode() != Mode::SealedIndex {
            let known = "sealed-index, whose queries are plain";
            return Err(Error::choice("the mode to probe", known, spec.mode().as_str()));
        }
        let key = match (spec.scheme().is_additive(), public_key) {
            (false, None) => KeyId::default(),
            (true, Some(bytes)) => additive::read_public_key(&spec, bytes)?.key_id(),
            (true, None) => return Err(Error::NoPublicKey),
            (false, Some(_)) => {
                let known = "an additively homomorphic one to have a public key";
                return Err(Error::choice("scheme", known, spec.scheme().as_str()));
            }
        };
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
        let mut body = Vec::new();
        if self.spec.scheme().is_additive() {
            let similarity = self.spec.similarity(Layout::Elements)?;
            body = Probes::quantize(&similarity, rows)?.to_bytes();
        } else {
            let scale = scales(&self.spec, None, 0).query;
            append_integers(self.spec.precision(), &checked.quantise(scale).values(), &mut body);
        }
        let head = QueryHead { count, top_level: 0, epoch: 0, tags: Vec::new() };
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
        if !matches!(spec.metric(), Metric::Cosine | Metric::Hamming) {
            let known = "cosine or hamming: the norms of probes do not travel";
            return Err(Error::choice("the metric of a probe", known, spec.metric().as_str()));
        }
        if spec.mode() != Mode::SealedIndex {
            let known = "sealed-index, whose queries are plain";
            return Err(Error::choice("the mode to probe", known, spec.mode().as_str()));
        }
        let (head, key, mut reader) = QueryHead::open(spec, bytes)?;
        let what = Kind::Query.as_str();
        if head.top_level != 0 || !head.tags.is_empty() {
            return Err(reader.error("level 0 and no filter tags expected").into());
        }
        let count = expect_some(head.count as usize)?;
        let (dimension, signs) = (spec.dimension(), spec.metric() == Metric::Hamming);
        let mut scales = scales(spec, None, 0);
        let (mut integers, mut probes) = (Zeroizing::new(Vec::new()), None);
        let expected = if let Engine::Additive(_) = &self.engine {
            let read = Probes::from_bytes(reader.take(reader.remaining())?)?;
            let expected = spec.similarity(Layout::Elements)?;
            if read.len() != count as usize || !read.fit(&expected) {
                let detail = format!("{count} probes as the index describes them expected");
                return Err(Reader::new(what, bytes).error(detail).into());
            }
            for (index, &scale) in read.scales().iter().enumerate() {
                expect_unit(read.weights(index), scale as f64, signs.then_some(scale))?;
            }
            scales = Scales { vector: scales.vector, query: 1.0 };
            probes = Some(read);
            self.key_pair()?.key_id()
        } else {
            *integers = read_integers(spec, count, reader)?;
            for row in integers.chunks_exact(dimension) {
                expect_unit(row, scales.query, signs.then_some(1))?;
            }
            KeyId::default()
        };
        if key != expected {
            return Err(ciphervec_he::Error::WrongKey { what, expected, actual: key }.into());
        }
        Ok(Query {
            bytes: bytes.to_vec(),
            norms: vec![unit_norm(spec); count as usize],
            scales,
            epoch: head.epoch,
            filtered: false,
            integers,
            probes,
            seconds: 0.0,
            foreign: true,
        })
    }
}

/// Refuses scores of an answer to `query` that no unit vectors have, if it was made by somebody else. An answer to another
/// query opens to uniform noise, of which in the compact form one score in eight is beyond.
pub(super) fn expect_cosines(query: &Query, cosines: &[f64]) -> Result<()> {
    if !query.foreign || cosines.iter().all(|cosine| cosine.abs() <= 1.0 + SLACK) {
        return Ok(());
    }
    let what = Kind::Response.as_str();
    Err(Reader::new(what, &[]).error("it is not one to this query").into())
}

/// What [`check`] finds for a probe before it is normalised: √d for signs, and 1 where the metric needs no norm.
fn unit_norm(spec: &IndexSpec) -> f64 {
    if spec.metric() == Metric::Hamming { (spec.dimension() as f64).sqrt() } else { 1.0 }
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

/// Refuses weights that are not a unit vector times `scale`, every coordinate rounded: their norm is within √d/2 of it. Signs
/// are all of one `size`.
fn expect_unit(weights: &[i64], scale: f64, size: Option<u64>) -> Result<()> {
    let square: f64 = weights.iter().map(|&weight| (weight as f64).powi(2)).sum();
    let slack = (weights.len() as f64).sqrt() / 2.0 + 1.0;
    let fits = match size {
        Some(size) => weights.iter().all(|weight| weight.unsigned_abs() == size),
        None => (square.sqrt() - scale).abs() <= slack,
    };
    if fits {
        return Ok(());
    }
    Err(Error::Range {
        what: "the norm of a probe",
        expected: match size {
            Some(size) => format!("that of weights {size} and -{size}"),
            None => format!("{scale:.0}, as of a unit vector, give or take {slack:.0}"),
        },
        actual: format!("{:.0}", square.sqrt()),
    })
}
