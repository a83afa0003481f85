//! The public description of an index. Name, dimension, metric, mode, precision and scheme enter; a checked value leaves.
//! Both sides.

use crate::error::{Error, Result};
use crate::similarity::additive as similarity;
use crate::{Metric, Mode, Precision, Scheme};
use ciphervec_he::factoring::{DEFAULT_BITS, MAX_BITS, MIN_BITS};
use ciphervec_he::lattice::ring;
use ciphervec_he::params::{self, ParamId, Security};
use ciphervec_he::security;
use ciphervec_he::wire::{self, Header, KeyId, Kind, Reader};

/// The largest dimension.
pub const MAX_DIMENSION: u32 = 16_384;
/// The longest collection name in bytes.
pub const MAX_NAME: usize = 512;

/// The length of ElGamal's field.
const ELGAMAL_BITS: u32 = 255;
const SEALED_INDEX_LEAKAGE: &str =
    "the queries; sizes, times, segments touched, equality of filterable fields";

/// What both sides know about an index. Two indexes with equal descriptions share keys; any difference separates them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IndexSpec {
    collection: String,
    dimension: u32,
    metric: Metric,
    mode: Mode,
    precision: Precision,
    scheme: Scheme,
    /// Length of the modulus of the index's key pair; 0 where there is none.
    bits: u32,
}

/// What an index rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecurityStatement {
    /// Classical security in bits, 0 for mode `open`.
    pub bits: u32,
    /// Ring degree; 0 under the additively homomorphic schemes.
    pub degree: usize,
    /// log2 of the widest modulus used, special primes included; of n, or of ElGamal's field.
    pub log_modulus: u32,
    /// The table's limit at this degree; 0 where the table is one of least lengths.
    pub limit: u32,
    /// The source of the limit.
    pub table: &'static str,
    /// The assumptions.
    pub assumption: &'static str,
    /// Whether the assumption is believed to hold against quantum computers, and the parameters are within the table's column
    /// for them where it has one.
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
        Ok(IndexSpec {
            collection: collection.to_owned(),
            dimension,
            metric,
            mode,
            precision,
            scheme: Scheme::Sealed,
            bits: 0,
        })
    }

    /// The same index under `scheme`. `bits` is the length of the modulus of its key pair: [`DEFAULT_BITS`] unless given,
    /// `None` for [`Scheme::Sealed`] and [`Scheme::ElGamal`], whose keys have one length.
    ///
    /// # Errors
    /// An additively homomorphic scheme in another mode than `sealed-index`; a precision that it does not have; a length
    /// that its keys do not have.
    pub fn with_scheme(self, scheme: Scheme, bits: Option<u32>) -> Result<Self> {
        if !scheme.has_modulus()
            && let Some(bits) = bits
        {
            return Err(Error::Range {
                what: "the length of the modulus",
                expected: format!("left out: keys of {} have one length", scheme.as_str()),
                actual: bits.to_string(),
            });
        }
        if !scheme.is_additive() {
            return Ok(IndexSpec { scheme, bits: 0, ..self });
        }
        if self.mode != Mode::SealedIndex {
            return Err(Error::SchemeMode { scheme: scheme.as_str(), mode: self.mode.as_str() });
        }
        if scheme == Scheme::ElGamal && self.precision == Precision::Wide {
            return Err(Error::choice(
                "precision",
                "standard or small under elgamal, which decrypts small numbers only",
                self.precision.as_str(),
            ));
        }
        let bits = if scheme.has_modulus() { bits.unwrap_or(DEFAULT_BITS) } else { 0 };
        if scheme.has_modulus()
            && !((MIN_BITS..=MAX_BITS).contains(&bits) && bits.is_multiple_of(64))
        {
            return Err(Error::Range {
                what: "the length of the modulus",
                expected: format!("a multiple of 64 in {MIN_BITS}..={MAX_BITS} bits"),
                actual: bits.to_string(),
            });
        }
        Ok(IndexSpec { scheme, bits, ..self })
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

    /// Whether segments are in the compact form, where every row has words of its own.
    pub fn is_compact(&self) -> bool {
        self.mode() == Mode::SealedIndex && !self.scheme().is_additive()
    }

    /// The scheme; [`Scheme::Sealed`] in mode `open` too, which encrypts nothing.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Length of the modulus of the index's key pair, `None` where there is none.
    pub fn bits(&self) -> Option<u32> {
        self.scheme.has_modulus().then_some(self.bits)
    }

    /// Vectors of this index as an additively homomorphic scheme takes them.
    pub(crate) fn similarity(&self, layout: similarity::Layout) -> Result<similarity::VectorSpec> {
        similarity::VectorSpec::new(
            self.dimension,
            self.metric,
            self.similarity_precision(),
            layout,
        )
    }

    /// What an additively homomorphic scheme calls the precision.
    pub(crate) fn similarity_precision(&self) -> similarity::GridPrecision {
        match self.precision {
            Precision::Standard => similarity::GridPrecision::Standard,
            Precision::Small => similarity::GridPrecision::Small,
            Precision::Wide => similarity::GridPrecision::High,
        }
    }

    pub(crate) fn wire_scheme(&self) -> wire::Scheme {
        self.scheme.wire().unwrap_or(match self.mode {
            Mode::Open => wire::Scheme::Plain,
            Mode::SealedIndex => wire::Scheme::Compact,
            Mode::SealedQuery | Mode::Sealed => wire::Scheme::Ring,
        })
    }

    pub(crate) fn param_id(&self) -> ParamId {
        if self.scheme.is_additive() {
            let description =
                format!("additive index: {}, {} bits", self.scheme.as_str(), self.bits);
            return ParamId::of(&description);
        }
        match self.mode {
            Mode::Open => ParamId::of("open: float32"),
            Mode::SealedIndex => self.precision.form().param_id(),
            Mode::SealedQuery | Mode::Sealed => ring::Ring::param_id(),
        }
    }

    /// The bytes every secret of this index is bound to: `dimension u32 | metric | mode, and the scheme in the upper half of
    /// the byte | precision | under an additively homomorphic scheme, bits u32 | name`.
    pub fn binding(&self) -> Vec<u8> {
        let mut bytes = self.dimension.to_le_bytes().to_vec();
        let mode = self.mode as u8 | (self.scheme as u8) << 4;
        bytes.extend([self.metric as u8, mode, self.precision as u8]);
        if self.scheme.is_additive() {
            bytes.extend(self.bits.to_le_bytes());
        }
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
            scheme: self.wire_scheme(),
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
        let (mode, scheme) = (mode & 15, mode >> 4);
        let scheme = Scheme::from_byte(scheme)
            .ok_or_else(|| reader.error(format!("unknown scheme {scheme}")))?;
        let bits = if scheme.is_additive() { reader.u32()? } else { 0 };
        if bits != 0 && !scheme.has_modulus() {
            return Err(reader.error("keys of this scheme have no modulus").into());
        }
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
        )?
        .with_scheme(scheme, scheme.has_modulus().then_some(bits))?;
        if header.scheme != spec.wire_scheme()
            || header.params != spec.param_id()
            || header.key != KeyId::default()
        {
            return Err(reader.error("the header does not fit the description").into());
        }
        Ok(spec)
    }

    /// What this index rests on and what the server learns.
    pub fn security(&self) -> SecurityStatement {
        if let Some(says) =
            self.scheme.wire().and_then(|scheme| security::statement(scheme, self.bits))
        {
            return SecurityStatement {
                bits: says.bits,
                degree: 0,
                log_modulus: self.bits().unwrap_or(ELGAMAL_BITS),
                limit: 0,
                table: says.table,
                assumption: says.assumption,
                post_quantum: says.post_quantum,
                leakage: SEALED_INDEX_LEAKAGE,
            };
        }
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
                Mode::SealedIndex => SEALED_INDEX_LEAKAGE,
                Mode::SealedQuery => {
                    "the index; sizes and times. No database privacy: who may ask can reconstruct the index"
                }
                Mode::Sealed => "sizes, times, segments touched, equality of filterable fields",
            },
        }
    }
}
