//! How an index keeps its rows and answers queries: what its mode, precision and scheme come to.
//!
//! Mode, precision and scheme are what people choose between; most of their mixtures mean nothing. [`Form::resolve`] is the one
//! place that knows which do, and everything behind it asks for the form.

use crate::error::{Error, Result};
use crate::index::mode::{Mode, Precision};
use crate::index::scheme::Scheme;
use ciphervec_he::factoring::{DEFAULT_BITS, MAX_BITS, MIN_BITS};
use ciphervec_he::lattice::compact::Width;
use ciphervec_he::lattice::ring::Ring;
use ciphervec_he::params::ParamId;
use ciphervec_he::wire;
use std::sync::LazyLock;

/// How an index keeps rows and answers queries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// Float32 rows and queries, nothing encrypted: mode `open`.
    Plain,
    /// Every row has encrypted words of its own, queries are plain integers: mode `sealed-index`.
    Compact(Width),
    /// Encrypted queries, several rows in a polynomial: modes `sealed-query` and `sealed`.
    Ring(Rows),
    /// Ciphertexts of an additively homomorphic scheme, plain queries: mode `sealed-index` under another scheme.
    Additive(Additive),
}

/// Rows of the ring form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rows {
    /// The server can read them: mode `sealed-query`.
    Plain,
    /// Mode `sealed`.
    Encrypted,
}

/// An additively homomorphic scheme with what its index chose of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Additive {
    scheme: Scheme,
    precision: Precision,
    /// Length of the modulus of the index's key pair; 0 where keys have one length.
    bits: u32,
}

impl Additive {
    /// The scheme: never [`Scheme::Lattice`].
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// How finely coordinates are rounded.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Length of the modulus of the index's key pair; `None` where keys have one length.
    pub fn bits(&self) -> Option<u32> {
        (self.bits != 0).then_some(self.bits)
    }
}

impl Form {
    /// The form that three names stand for. `bits` is the length of the modulus of an additively homomorphic scheme's key pair:
    /// [`DEFAULT_BITS`] unless given, `None` for schemes whose keys have one length.
    ///
    /// # Errors
    /// A precision that the mode or the scheme does not have; an additively homomorphic scheme in another mode than
    /// `sealed-index`; a length that its keys do not have.
    pub fn resolve(
        mode: Mode,
        precision: Precision,
        scheme: Scheme,
        bits: Option<u32>,
    ) -> Result<Self> {
        if precision != Precision::Standard && mode != Mode::SealedIndex {
            let known = "standard in every mode but sealed-index";
            return Err(Error::choice("precision", known, precision.as_str()));
        }
        if let (Some(bits), false) = (bits, scheme.has_modulus()) {
            return Err(Error::Range {
                what: "the length of the modulus",
                expected: format!("left out: keys of {} have one length", scheme.as_str()),
                actual: bits.to_string(),
            });
        }
        if scheme.is_additive() {
            return Additive::resolve(mode, precision, scheme, bits).map(Form::Additive);
        }
        Ok(match mode {
            Mode::Open => Form::Plain,
            Mode::SealedIndex => Form::Compact(match precision {
                Precision::Standard => Width::Standard,
                Precision::Small => Width::Small,
                Precision::Wide => Width::Wide,
            }),
            Mode::SealedQuery => Form::Ring(Rows::Plain),
            Mode::Sealed => Form::Ring(Rows::Encrypted),
        })
    }

    /// The trust mode it serves.
    pub fn mode(&self) -> Mode {
        match self {
            Form::Plain => Mode::Open,
            Form::Compact(_) | Form::Additive(_) => Mode::SealedIndex,
            Form::Ring(Rows::Plain) => Mode::SealedQuery,
            Form::Ring(Rows::Encrypted) => Mode::Sealed,
        }
    }

    /// The precision it was resolved from.
    pub fn precision(&self) -> Precision {
        match self {
            Form::Compact(Width::Small) => Precision::Small,
            Form::Compact(Width::Wide) => Precision::Wide,
            Form::Additive(additive) => additive.precision,
            Form::Plain | Form::Compact(Width::Standard) | Form::Ring(_) => Precision::Standard,
        }
    }

    /// The scheme it was resolved from; [`Scheme::Lattice`] for [`Form::Plain`] too, which encrypts nothing.
    pub fn scheme(&self) -> Scheme {
        match self {
            Form::Additive(additive) => additive.scheme,
            Form::Plain | Form::Compact(_) | Form::Ring(_) => Scheme::Lattice,
        }
    }

    /// Length of the modulus of the index's key pair, `None` where there is none.
    pub fn bits(&self) -> Option<u32> {
        match self {
            Form::Additive(additive) => additive.bits(),
            Form::Plain | Form::Compact(_) | Form::Ring(_) => None,
        }
    }

    /// Whether a server needs keys of the owner's to answer: Galois keys, or the public key of a key pair.
    pub fn needs_evaluation_keys(&self) -> bool {
        match self {
            Form::Plain | Form::Compact(_) => false,
            Form::Ring(_) | Form::Additive(_) => true,
        }
    }

    /// What frames say.
    pub(crate) fn wire_scheme(&self) -> wire::Scheme {
        match self {
            Form::Plain => wire::Scheme::Plain,
            Form::Compact(_) => wire::Scheme::Compact,
            Form::Ring(_) => wire::Scheme::Ring,
            Form::Additive(additive) => additive.scheme.wire().unwrap_or(wire::Scheme::Plain),
        }
    }

    /// The public name of the parameters.
    pub(crate) fn param_id(&self) -> ParamId {
        match self {
            Form::Plain => ParamId::of("open: float32"),
            Form::Compact(width) => width.param_id(),
            Form::Ring(_) => Ring::param_id(),
            Form::Additive(Additive { scheme, bits, .. }) => {
                ParamId::of(&format!("additive index: {}, {bits} bits", scheme.as_str()))
            }
        }
    }
}

impl Additive {
    fn resolve(
        mode: Mode,
        precision: Precision,
        scheme: Scheme,
        bits: Option<u32>,
    ) -> Result<Self> {
        if mode != Mode::SealedIndex {
            return Err(Error::SchemeMode { scheme: scheme.as_str(), mode: mode.as_str() });
        }
        if !scheme.has_modulus() {
            if precision == Precision::Wide {
                // So far these are the schemes that decrypt by a discrete logarithm.
                static KNOWN: LazyLock<String> = LazyLock::new(|| {
                    let small = |scheme: &Scheme| scheme.is_additive() && !scheme.has_modulus();
                    let names = Scheme::ALL.into_iter().filter(small).map(Scheme::as_str);
                    let names = names.collect::<Vec<_>>().join(", ");
                    format!("standard or small under {names}: small numbers only are decrypted")
                });
                return Err(Error::choice("precision", &KNOWN, precision.as_str()));
            }
            return Ok(Additive { scheme, precision, bits: 0 });
        }
        let bits = bits.unwrap_or(DEFAULT_BITS);
        if !((MIN_BITS..=MAX_BITS).contains(&bits) && bits.is_multiple_of(64)) {
            return Err(Error::Range {
                what: "the length of the modulus",
                expected: format!("a multiple of 64 in {MIN_BITS}..={MAX_BITS} bits"),
                actual: bits.to_string(),
            });
        }
        Ok(Additive { scheme, precision, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every mixture either resolves to a form that gives the same names back, or is refused.
    #[test]
    fn names_come_back_as_they_went_in() {
        let precisions = [Precision::Standard, Precision::Small, Precision::Wide];
        let mut resolved = Vec::new();
        for mode in Mode::ALL {
            for precision in precisions {
                for scheme in Scheme::ALL {
                    let Ok(form) = Form::resolve(mode, precision, scheme, None) else { continue };
                    assert_eq!((form.mode(), form.precision()), (mode, precision));
                    assert_eq!(form.scheme(), scheme);
                    assert_eq!(form.bits(), scheme.has_modulus().then_some(DEFAULT_BITS));
                    resolved.push(form);
                }
            }
        }
        // Four modes, two more precisions of one, three schemes with all precisions and one with two.
        assert_eq!(resolved.len(), 4 + 2 + 3 * 3 + 2);
    }
}
