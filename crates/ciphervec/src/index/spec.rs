//! The description of an index: name, dimension, metric, mode, precision and scheme. It is checked when it is made.
//!
//! A frame of kind 1, with the payload `dimension u32 | metric u8 | mode u8 | precision u8 | name, UTF-8`. Under an additive
//! scheme the upper half of the mode's byte is 1 Paillier, 2 Damgård–Jurik, 3 Okamoto–Uchiyama or 4 ElGamal, and the length of
//! the modulus, u32, 0 for ElGamal, stands before the name. Where 128 is added to the precision, an *incarnation* of 16 random
//! bytes stands before the name: collections have one, those of release 0.1 and indexes made by hand don't. The hash of the
//! spec is the *index id*, 8 bytes, in every object of the index: bytes of another one are refused.

use crate::error::{Error, Result};
use crate::index::form::Form;
use crate::index::metric::Metric;
use crate::index::mode::{Mode, Precision};
use crate::index::scheme::Scheme;
use crate::index::security::SecurityStatement;
use ciphervec_he::params::ParamId;
use ciphervec_he::wire::{self, Header, KeyId, Kind, Reader};

/// The largest dimension.
pub const MAX_DIMENSION: u32 = 16_384;
/// The most queries in one message.
pub const MAX_QUERIES: u32 = 4096;
/// The longest collection name in bytes.
pub const MAX_NAME: usize = 512;
/// Bytes of an incarnation.
pub const INCARNATION: usize = 16;

/// In the byte of the precision: an incarnation follows.
const HAS_INCARNATION: u8 = 0x80;

/// What both sides know about an index. Two indexes with equal descriptions share keys; any difference separates them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IndexSpec {
    collection: String,
    dimension: u32,
    metric: Metric,
    form: Form,
    incarnation: Option<[u8; INCARNATION]>,
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
        let form = Form::resolve(mode, precision, Scheme::Lattice, None)?;
        Ok(IndexSpec {
            collection: collection.to_owned(),
            dimension,
            metric,
            form,
            incarnation: None,
        })
    }

    /// The same index under `scheme`, with a key pair whose modulus has `bits` bits: [`Form::resolve`].
    ///
    /// # Errors
    /// Those of [`Form::resolve`].
    pub fn with_scheme(self, scheme: Scheme, bits: Option<u32>) -> Result<Self> {
        let form = Form::resolve(self.mode(), self.precision(), scheme, bits)?;
        Ok(IndexSpec { form, ..self })
    }

    /// The same index as one that came to be under this random number: one of the same name, made before or after it, shares no
    /// key with it.
    #[must_use]
    pub fn with_incarnation(self, incarnation: [u8; INCARNATION]) -> Self {
        IndexSpec { incarnation: Some(incarnation), ..self }
    }

    /// The random number that tells it from others of its name; none in indexes made by hand, and in collections of release 0.1.
    pub fn incarnation(&self) -> Option<&[u8; INCARNATION]> {
        self.incarnation.as_ref()
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

    /// What it does with rows and queries.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// The trust mode.
    pub fn mode(&self) -> Mode {
        self.form.mode()
    }

    /// The precision.
    pub fn precision(&self) -> Precision {
        self.form.precision()
    }

    /// The scheme; [`Scheme::Lattice`] in mode `open` too, which encrypts nothing.
    pub fn scheme(&self) -> Scheme {
        self.form.scheme()
    }

    /// Length of the modulus of the index's key pair, `None` where there is none.
    pub fn bits(&self) -> Option<u32> {
        self.form.bits()
    }

    /// The bytes every secret of this index is bound to: `dimension u32 | metric | mode, and the scheme in the upper half of
    /// the byte | precision, and 128 if there is an incarnation | under an additively homomorphic scheme, bits u32 |
    /// incarnation 16, if there is one | name`.
    pub fn binding(&self) -> Vec<u8> {
        let mut bytes = self.dimension.to_le_bytes().to_vec();
        let mode = self.mode() as u8 | (self.scheme() as u8) << 4;
        let precision = self.precision() as u8 | self.incarnation.map_or(0, |_| HAS_INCARNATION);
        bytes.extend([self.metric as u8, mode, precision]);
        if self.scheme().is_additive() {
            bytes.extend(self.bits().unwrap_or(0).to_le_bytes());
        }
        bytes.extend(self.incarnation.iter().flatten());
        bytes.extend_from_slice(self.collection.as_bytes());
        bytes
    }

    /// A short public name: which index some bytes belong to.
    pub fn id(&self) -> [u8; 8] {
        let mut id = [0; 8];
        id.copy_from_slice(&blake3::derive_key("ciphervec v1 index-id", &self.binding())[..8]);
        id
    }

    #[doc(hidden)]
    pub fn id_text(id: [u8; 8]) -> String {
        id.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Refuses bytes that name another index.
    #[doc(hidden)]
    pub fn expect_id(&self, what: &'static str, found: [u8; 8]) -> Result<()> {
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
        let (precision, incarnated) =
            (precision & !HAS_INCARNATION, precision & HAS_INCARNATION != 0);
        let scheme = Scheme::from_byte(scheme)
            .ok_or_else(|| reader.error(format!("unknown scheme {scheme}")))?;
        let bits = if scheme.is_additive() { reader.u32()? } else { 0 };
        if bits != 0 && !scheme.has_modulus() {
            return Err(reader.error("keys of this scheme have no modulus").into());
        }
        let incarnation = if incarnated { Some(reader.array()?) } else { None };
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
        let spec = IndexSpec { incarnation, ..spec };
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
        SecurityStatement::of(&self.form)
    }

    #[doc(hidden)]
    pub fn wire_scheme(&self) -> wire::Scheme {
        self.form.wire_scheme()
    }

    #[doc(hidden)]
    pub fn param_id(&self) -> ParamId {
        self.form.param_id()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(mode: Mode) -> IndexSpec {
        IndexSpec::new("faces", 8, Metric::L2, mode, Precision::Standard).unwrap()
    }

    #[test]
    fn an_incarnation_separates_and_comes_back() {
        for spec in [spec(Mode::Open), spec(Mode::Sealed), {
            let additive = spec(Mode::SealedIndex);
            additive.with_scheme(Scheme::Paillier, Some(2048)).unwrap()
        }] {
            let (one, other) =
                (spec.clone().with_incarnation([1; 16]), spec.clone().with_incarnation([2; 16]));
            assert_eq!(one.binding().len(), spec.binding().len() + INCARNATION);
            for made in [&spec, &one, &other] {
                let read = IndexSpec::from_bytes(&made.to_bytes()).unwrap();
                assert_eq!((read.incarnation(), &read), (made.incarnation(), made));
            }
            let ids = [spec.id(), one.id(), other.id()];
            assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
        }
        let text = "an index without one whose name begins with the bytes of one is another index";
        let long = IndexSpec::new(
            &("\u{1}".repeat(16) + "faces"),
            8,
            Metric::L2,
            Mode::Open,
            Precision::Standard,
        );
        assert_ne!(
            long.unwrap().binding(),
            spec(Mode::Open).with_incarnation([1; 16]).binding(),
            "{text}"
        );
    }
}
