//! The public description of an index. Name, dimension, metric, mode and precision enter; a checked value leaves. Both sides.

use crate::error::{Error, Result};
use crate::{Metric, Mode, Precision};
use ciphervec_he::params::{self, ParamId, Security};
use ciphervec_he::sealed::ring;
use ciphervec_he::wire::{self, Header, KeyId, Kind, Reader, Scheme};

/// The largest dimension.
pub const MAX_DIMENSION: u32 = 16_384;
/// The longest collection name in bytes.
pub const MAX_NAME: usize = 512;

/// What both sides know about an index. Two indexes with equal descriptions share keys; any difference separates them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IndexSpec {
    collection: String,
    dimension: u32,
    metric: Metric,
    mode: Mode,
    precision: Precision,
}

/// What an index rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecurityStatement {
    /// Classical security in bits, 0 for mode `open`.
    pub bits: u32,
    /// Ring degree.
    pub degree: usize,
    /// log2 of the widest modulus used, special primes included.
    pub log_modulus: u32,
    /// The table's limit at this degree.
    pub limit: u32,
    /// The source of the limit.
    pub table: &'static str,
    /// The assumptions.
    pub assumption: &'static str,
    /// Whether the assumption is believed to hold against quantum computers.
    pub post_quantum: bool,
    /// What the server learns.
    pub leakage: &'static str,
}

impl IndexSpec {
    /// A checked description.
    ///
    /// # Errors
    /// A name that is empty or over [`MAX_NAME`] bytes, a dimension outside 1 … [`MAX_DIMENSION`], a precision that the
    /// mode does not have.
    pub fn new(
        collection: &str,
        dimension: u32,
        metric: Metric,
        mode: Mode,
        precision: Precision,
    ) -> Result<Self> {
        if collection.is_empty() || collection.len() > MAX_NAME {
            return Err(Error::Range {
                what: "the length of a collection name",
                expected: format!("1 to {MAX_NAME} bytes"),
                actual: collection.len().to_string(),
            });
        }
        if dimension == 0 || dimension > MAX_DIMENSION {
            return Err(Error::Range {
                what: "dimension",
                expected: format!("1 to {MAX_DIMENSION}"),
                actual: dimension.to_string(),
            });
        }
        if precision != Precision::Standard && mode != Mode::SealedIndex {
            return Err(Error::choice(
                "precision",
                "standard in every mode but sealed-index",
                precision.as_str(),
            ));
        }
        Ok(IndexSpec { collection: collection.to_owned(), dimension, metric, mode, precision })
    }

    /// The collection's name.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// Coordinates a vector.
    pub fn dimension(&self) -> usize {
        self.dimension as usize
    }

    /// The metric.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The trust mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The precision.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    pub(crate) fn scheme(&self) -> Scheme {
        match self.mode {
            Mode::Open => Scheme::Plain,
            Mode::SealedIndex => Scheme::Compact,
            Mode::SealedQuery | Mode::Sealed => Scheme::Ring,
        }
    }

    pub(crate) fn param_id(&self) -> ParamId {
        match self.mode {
            Mode::Open => ParamId::of("open: float32"),
            Mode::SealedIndex => self.precision.form().param_id(),
            Mode::SealedQuery | Mode::Sealed => ring::Ring::param_id(),
        }
    }

    /// The bytes every secret of this index is bound to.
    pub fn binding(&self) -> Vec<u8> {
        let mut bytes = self.dimension.to_le_bytes().to_vec();
        bytes.extend([self.metric as u8, self.mode as u8, self.precision as u8]);
        bytes.extend_from_slice(self.collection.as_bytes());
        bytes
    }

    /// A short public name: which index some bytes belong to.
    pub fn id(&self) -> [u8; 8] {
        let mut id = [0; 8];
        id.copy_from_slice(&blake3::derive_key("ciphervec v1 index-id", &self.binding())[..8]);
        id
    }

    pub(crate) fn id_text(id: [u8; 8]) -> String {
        id.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Refuses bytes that name another index.
    pub(crate) fn expect_id(&self, what: &'static str, found: [u8; 8]) -> Result<()> {
        if found == self.id() {
            return Ok(());
        }
        Err(Error::OtherIndex {
            what,
            expected: Self::id_text(self.id()),
            actual: Self::id_text(found),
        })
    }

    /// The framed description.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = Header {
            scheme: self.scheme(),
            kind: Kind::Spec,
            params: self.param_id(),
            key: KeyId::default(),
        };
        header.frame(&self.binding())
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged bytes or a description that [`Self::new`] would refuse.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Spec, bytes)?;
        let mut reader = Reader::new(Kind::Spec.as_str(), payload);
        let dimension = reader.u32()?;
        let (metric, mode, precision) = (reader.u8()?, reader.u8()?, reader.u8()?);
        let name = reader.take(reader.remaining())?;
        let collection =
            core::str::from_utf8(name).map_err(|_| reader.error("the name is not UTF-8"))?;
        let unknown = |what: &str, value: u8| reader.error(format!("unknown {what} {value}"));
        let spec = IndexSpec::new(
            collection,
            dimension,
            Metric::from_byte(metric).ok_or_else(|| unknown("metric", metric))?,
            Mode::from_byte(mode).ok_or_else(|| unknown("mode", mode))?,
            Precision::from_byte(precision).ok_or_else(|| unknown("precision", precision))?,
        )?;
        if header.scheme != spec.scheme()
            || header.params != spec.param_id()
            || header.key != KeyId::default()
        {
            return Err(reader.error("the header does not fit the description").into());
        }
        Ok(spec)
    }

    /// What this index rests on and what the server learns.
    pub fn security(&self) -> SecurityStatement {
        let (degree, log_modulus) = match self.mode {
            Mode::Open => (0, 0),
            Mode::SealedIndex => {
                let form = self.precision.form();
                (form.degree(), form.ciphertext_modulus_bits())
            }
            Mode::SealedQuery | Mode::Sealed => (ring::DEGREE, 2 * ring::PRIME_BITS),
        };
        SecurityStatement {
            bits: if self.mode == Mode::Open { 0 } else { 128 },
            degree,
            log_modulus,
            limit: params::max_log_modulus(degree, Security::Classical128).unwrap_or(0),
            table: "community guidelines 2024, IACR ePrint 2024/463, Table 5.2",
            assumption: match self.mode {
                Mode::Open => "none: nothing is encrypted",
                Mode::SealedIndex => "ring LWE, uniform ternary secret, sigma 3.2",
                Mode::SealedQuery | Mode::Sealed => {
                    "ring LWE, uniform ternary secret, sigma 3.2; circular security for the Galois keys"
                }
            },
            post_quantum: self.mode != Mode::Open
                && params::max_log_modulus(degree, Security::Quantum128)
                    .is_some_and(|limit| log_modulus <= limit),
            leakage: match self.mode {
                Mode::Open => "everything",
                Mode::SealedIndex => {
                    "the queries; sizes, times, segments touched, equality of filterable fields"
                }
                Mode::SealedQuery => {
                    "the index; sizes and times. No database privacy: who may ask can reconstruct the index"
                }
                Mode::Sealed => "sizes, times, segments touched, equality of filterable fields",
            },
        }
    }
}
