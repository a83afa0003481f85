//! Rust errors enter, JavaScript errors leave whose `name` and `code` say what a caller would catch; the only place that
//! maps one to the other.

use ciphervec::decode::DecodeError;
use ciphervec::protect::aead::EnvelopeError;
use ciphervec::protect::id::IdError;
use ciphervec::protect::keyfile::KeyfileError;
use ciphervec::{Error, SegmentId};
use ciphervec_arith::error::ArithError;
use ciphervec_he::Error as SchemeError;
use js_sys::{Array, Reflect, Uint8Array};
use wasm_bindgen::JsValue;

/// What a caller would catch: the exceptions of `ciphervec.errors`, by the same names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    BoundExceeded,
    CiphervecError,
    CorruptData,
    DuplicateId,
    InvalidInput,
    MismatchedAnswer,
    /// More memory than 32 bits address, or than there is.
    OutOfMemory,
    PoolExhausted,
    TamperedAnswer,
    UnsupportedVersion,
    WrongKey,
}

impl Sort {
    fn name(self) -> &'static str {
        match self {
            Sort::BoundExceeded => "BoundExceeded",
            Sort::CiphervecError => "CiphervecError",
            Sort::CorruptData => "CorruptData",
            Sort::DuplicateId => "DuplicateId",
            Sort::InvalidInput => "InvalidInput",
            Sort::MismatchedAnswer => "MismatchedAnswer",
            Sort::OutOfMemory => "OutOfMemory",
            Sort::PoolExhausted => "PoolExhausted",
            Sort::TamperedAnswer => "TamperedAnswer",
            Sort::UnsupportedVersion => "UnsupportedVersion",
            Sort::WrongKey => "WrongKey",
        }
    }
}

/// An error on its way to JavaScript.
#[derive(Debug)]
pub struct Failure {
    pub sort: Sort,
    pub message: String,
    /// The segments that an answer failed its check about.
    segments: Vec<SegmentId>,
}

pub type Result<T> = core::result::Result<T, Failure>;

impl Failure {
    pub fn new(sort: Sort, message: impl Into<String>) -> Self {
        Failure { sort, message: message.into(), segments: Vec::new() }
    }

    pub fn input(message: impl Into<String>) -> Self {
        Failure::new(Sort::InvalidInput, message)
    }

    pub fn corrupt(message: impl Into<String>) -> Self {
        Failure::new(Sort::CorruptData, message)
    }
}

#[cfg(feature = "search")]
impl From<ciphervec_client::Error> for Failure {
    fn from(error: ciphervec_client::Error) -> Self {
        let sort = match error {
            ciphervec_client::Error::Corrupt(_) => Sort::CorruptData,
            _ => Sort::InvalidInput,
        };
        Failure::new(sort, error.to_string())
    }
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> Self {
        let error = js_sys::Error::new(&failure.message);
        error.set_name(failure.sort.name());
        // An object that was just made takes any property.
        let set = |key: &str, value: &JsValue| Reflect::set(&error, &key.into(), value).is_ok();
        set("code", &failure.sort.name().into());
        if !failure.segments.is_empty() {
            let ids: Array = failure
                .segments
                .iter()
                .map(|id| JsValue::from(Uint8Array::from(&id.0[..])))
                .collect();
            set("segments", &ids);
        }
        error.into()
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        let sort = match error {
            DecodeError::Version { .. } => Sort::UnsupportedVersion,
            _ => Sort::CorruptData,
        };
        Failure::new(sort, error.to_string())
    }
}

impl From<IdError> for Failure {
    fn from(error: IdError) -> Self {
        Failure::input(error.to_string())
    }
}

impl From<ArithError> for Failure {
    fn from(error: ArithError) -> Self {
        Failure::input(error.to_string())
    }
}

impl From<EnvelopeError> for Failure {
    fn from(error: EnvelopeError) -> Self {
        match error {
            EnvelopeError::Decode(error) => error.into(),
            EnvelopeError::Unauthentic { .. } => Failure::corrupt(error.to_string()),
            EnvelopeError::Plaintext { .. } => Failure::input(error.to_string()),
            _ => Failure::new(Sort::CiphervecError, error.to_string()),
        }
    }
}

impl From<KeyfileError> for Failure {
    fn from(error: KeyfileError) -> Self {
        let sort = match &error {
            KeyfileError::Damaged { cause: DecodeError::Version { .. } } => {
                Sort::UnsupportedVersion
            }
            KeyfileError::Damaged { .. } | KeyfileError::Checksum { .. } => Sort::CorruptData,
            KeyfileError::WrongPassphrase { .. } => Sort::WrongKey,
            KeyfileError::PassphraseNeeded { .. }
            | KeyfileError::NotEncrypted { .. }
            | KeyfileError::OtherKey { .. }
            | KeyfileError::EmptyPassphrase
            | KeyfileError::Cost { .. } => Sort::InvalidInput,
            _ => Sort::CiphervecError,
        };
        Failure::new(sort, error.to_string())
    }
}

impl From<SchemeError> for Failure {
    fn from(error: SchemeError) -> Self {
        let sort = match error {
            SchemeError::Malformed { .. }
            | SchemeError::Checksum { .. }
            | SchemeError::Kind { .. } => Sort::CorruptData,
            SchemeError::Version { .. } => Sort::UnsupportedVersion,
            SchemeError::WrongKey { .. } => Sort::WrongKey,
            SchemeError::Bound | SchemeError::Outside { .. } => Sort::BoundExceeded,
            SchemeError::Exhausted { .. } | SchemeError::Published { .. } => Sort::PoolExhausted,
            SchemeError::MissingKey { .. }
            | SchemeError::Parameters { .. }
            | SchemeError::Insecure { .. }
            | SchemeError::Range { .. }
            | SchemeError::Choice { .. }
            | SchemeError::Level { .. }
            | SchemeError::Scale { .. }
            | SchemeError::Arith(_) => Sort::InvalidInput,
            _ => Sort::CiphervecError,
        };
        Failure::new(sort, error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Scheme(error) => error.into(),
            Error::Envelope(error) => error.into(),
            Error::Keyfile(error) => error.into(),
            Error::Id(error) => error.into(),
            Error::DuplicateId(_) => Failure::new(Sort::DuplicateId, message),
            Error::NotShared { .. } => Failure::new(Sort::WrongKey, message),
            Error::Directory { .. } | Error::Consumed { .. } => Failure::corrupt(message),
            Error::Tampered { segments } => {
                Failure { segments, ..Failure::new(Sort::TamperedAnswer, message) }
            }
            Error::Mismatched { segments } => {
                Failure { segments, ..Failure::new(Sort::MismatchedAnswer, message) }
            }
            _ => Failure::input(message),
        }
    }
}
